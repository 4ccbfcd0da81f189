#include "song/crc32c.hpp"

#include <array>
#include <cstring>

#include "processor_features.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace polymux::song {

namespace {

constexpr std::uint32_t reversed_polynomial = 0x82F63B78U;

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
        std::uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit) {
            rest = rest >> 1U ^ ((rest & 1U) != 0 ? reversed_polynomial : 0U);
        }
        table[byte] = rest;
    }
    return table;
}

constexpr std::array<std::uint32_t, 256> table = make_table();

#if defined(__x86_64__)
#if defined(__clang__)
#define POLYMUX_CRC32 [[gnu::target("sse4.2,crc32")]]
#else  // Part of SSE 4.2, without a name in older versions of GCC.
#define POLYMUX_CRC32 [[gnu::target("sse4.2")]]
#endif
POLYMUX_CRC32 std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                                  std::uint32_t before) noexcept {
    std::uint64_t rest = ~before;
    std::size_t index = 0;
    for (; index + sizeof(std::uint64_t) <= bytes.size(); index += sizeof(std::uint64_t)) {
        std::uint64_t eight = 0;
        std::memcpy(&eight, bytes.data() + index, sizeof eight);
        rest = _mm_crc32_u64(rest, eight);
    }
    auto last = static_cast<std::uint32_t>(rest);
    for (; index < bytes.size(); ++index) {
        last = _mm_crc32_u8(last, std::to_integer<std::uint8_t>(bytes[index]));
    }
    return ~last;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
    std::uint32_t rest = ~before;
    for (const std::byte byte : bytes) {
        rest = rest >> 8U ^ table[(rest ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
    }
    return ~rest;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
#if defined(__x86_64__)
    if (internal::has_sse4()) return crc32c_by_instruction(bytes, before);
#endif
    return crc32c_by_table(bytes, before);
}

}  // namespace polymux::song
