#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "song/crc32c.hpp"
#include "support.hpp"

using namespace polymux::song;
using namespace polymux::testing;

using Bytes = std::vector<std::byte>;

TEST_CASE("crc32c gives the values of RFC 3720, with and without the instruction") {
    const auto check = [](std::span<const std::byte> bytes, std::uint32_t expected) {
        CHECK(crc32c(bytes) == expected);
        CHECK(crc32c_by_table(bytes) == expected);
    };
    check({}, 0);
    check(as_bytes("123456789"), 0xE3069283U);
    check(Bytes(32, std::byte{0}), 0x8A9136AAU);
    check(Bytes(32, std::byte{0xFF}), 0x62A8AB43U);
    std::mt19937 random(1);
    Bytes bytes(1'000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    for (const std::size_t cut : {0U, 1U, 7U, 8U, 9U, 500U, 999U, 1'000U}) {
        const auto front = std::span(bytes).first(cut);
        const auto rest = std::span(bytes).subspan(cut);
        CHECK(crc32c(rest, crc32c(front)) == crc32c_by_table(bytes));
        CHECK(crc32c_by_table(rest, crc32c_by_table(front)) == crc32c(bytes));
    }
}
