#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "polymux/request/json_text.hpp"
#include "request/text_kernels.hpp"

using namespace polymux::json;

namespace {

using Codes = std::vector<std::uint32_t>;

/// A slow and simple reference implementation; empty if a code is not a character.
std::string expected(const Codes& codes) {
    std::string text = "\"";
    const auto put = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
    for (const std::uint32_t code : codes) {
        if ((code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return {};
        constexpr std::string_view short_names = "btnvfr";
        if (code == '"' || code == '\\') {
            text += '\\';
            put(code);
        } else if (code >= 8 && code <= 13 && code != 11) {
            text += '\\';
            text += short_names[code - 8];
        } else if (code < 0x20) {
            constexpr std::string_view digits = "0123456789abcdef";
            text += "\\u00";
            text += digits[code / 16];
            text += digits[code % 16];
        } else if (code < 0x80) {
            put(code);
        } else if (code < 0x800) {
            put(0xC0 + code / 64);
            put(0x80 + code % 64);
        } else if (code < 0x10000) {
            put(0xE0 + code / 4096);
            put(0x80 + code / 64 % 64);
            put(0x80 + code % 64);
        } else {
            put(0xF0 + code / 262144);
            put(0x80 + code / 4096 % 64);
            put(0x80 + code / 64 % 64);
            put(0x80 + code % 64);
        }
    }
    return text + '"';
}

std::vector<Processor> processors() {
    std::vector<Processor> here;
    for (const Processor one : {Processor::any, Processor::sse4, Processor::avx2}) {
        if (kernels_for(one) != nullptr) here.push_back(one);
    }
    return here;
}

/// A kernel's output for the codes, or empty if it refuses.
template <typename Unit, typename Kernel>
std::string written(Kernel kernel, const Codes& codes) {
    // The exact size lets a sanitizer see every byte read past it.
    const std::vector<Unit> units(codes.begin(), codes.end());
    Buffer buffer;
    buffer.append('"');
    if constexpr (std::is_same_v<decltype(kernel(buffer, units.data(), units.size())), bool>) {
        if (!kernel(buffer, units.data(), units.size())) return {};
    } else {
        kernel(buffer, units.data(), units.size());
    }
    buffer.append('"');
    return std::string(buffer.view());
}

std::string utf8(const Codes& codes) {
    std::string text = expected(codes);
    return text.substr(1, text.size() - 2);
}

void check_everywhere(const Codes& codes) {
    const std::string wanted = expected(codes);
    const std::uint32_t highest = codes.empty() ? 0 : *std::max_element(codes.begin(), codes.end());
    for (const Processor processor : processors()) {
        const TextKernels& kernels = *kernels_for(processor);
        CAPTURE(static_cast<int>(processor));
        CHECK(written<std::uint32_t>(kernels.ucs4, codes) == wanted);
        if (highest < 0x10000) CHECK(written<std::uint16_t>(kernels.ucs2, codes) == wanted);
        if (highest < 0x100) CHECK(written<std::uint8_t>(kernels.latin1, codes) == wanted);
        if (highest < 0x80) CHECK(written<std::uint8_t>(kernels.utf8, codes) == wanted);
    }
}

std::string number(double value) {
    Buffer buffer;
    REQUIRE(append_number(buffer, value));
    return std::string(buffer.view());
}

}  // namespace

TEST_SUITE("json_text") {
    TEST_CASE("every kernel that this processor supports is tested") {
        CHECK(kernels_for(Processor::any) != nullptr);
#if defined(__x86_64__)
        CHECK((kernels_for(Processor::sse4) != nullptr) == (__builtin_cpu_supports("sse4.2") != 0));
        CHECK((kernels_for(Processor::avx2) != nullptr) == (__builtin_cpu_supports("avx2") != 0));
#endif
        CHECK(&best_kernels() == kernels_for(processors().back()));
    }

    TEST_CASE("one character at every position of texts of every length") {
        const Codes specials = {0,     7,      8,      9,      10,      11,       12,     13,
                                0x1F,  '"',    '\\',   0x7F,   0x80,    0xFF,     0x100,  0x7FF,
                                0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF, 0xD800, 0xDFFF};
        for (const std::uint32_t special : specials) {
            for (const std::size_t length :
                 {1U, 2U, 3U, 4U, 7U, 8U, 15U, 16U, 17U, 31U, 33U, 48U, 70U, 97U, 128U, 291U}) {
                for (std::size_t place = 0; place < length; ++place) {
                    Codes codes(length, 'a');
                    codes[place] = special;
                    check_everywhere(codes);
                }
            }
        }
    }

    TEST_CASE("random texts of every density, also longer than the initial buffer") {
        std::mt19937 random(20261121);
        const std::array<std::uint32_t, 5> highest = {0x7F, 0xFF, 0x7FF, 0xFFFF, 0x10FFFF};
        for (int round = 0; round < 3000; ++round) {
            Codes codes(random() % (round % 50 == 0 ? 20'000 : 200));
            const unsigned rare = 1U << random() % 8;
            const std::uint32_t most = highest[random() % highest.size()];
            for (std::uint32_t& code : codes) {
                code = random() % rare == 0 ? static_cast<std::uint32_t>(random()) % (most + 1)
                                            : 'a' + static_cast<std::uint32_t>(random()) % 26;
                if (random() % rare == 0) code = U"\"\\\n\x01"[random() % 4];
                if (code >= 0xD800 && code <= 0xDFFF) code = 0x20AC;
            }
            check_everywhere(codes);
        }
    }

    TEST_CASE("numbers that are not characters are refused") {
        check_everywhere({'a', 0x110000});
        check_everywhere(Codes(40, 0xFFFFFFFF));
        check_everywhere(Codes(40, 0x80000041));
        Buffer buffer;
        buffer.append('[');
        std::vector<std::uint16_t> half(1'000, 'a');
        half.back() = 0xDC00;
        CHECK_FALSE(append_ucs2(buffer, half));
        const std::vector<std::uint32_t> lone(1'000, 0xD83D);
        CHECK_FALSE(append_ucs4(buffer, lone));
        CHECK(buffer.view() == "[");
    }

    TEST_CASE("UTF-8 passes through unchanged, short and long") {
        for (std::size_t length = 0; length < 80; ++length) {
            const Codes codes(length, length % 3 == 0 ? 0x4E2D : 'x');
            const std::string text = utf8(codes);
            for (const Processor processor : processors()) {
                Buffer buffer;
                kernels_for(processor)->utf8(
                    buffer, reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
                CHECK(buffer.view() == text);
            }
            Buffer buffer;
            append_utf8(buffer, text);
            CHECK(buffer.view() == '"' + text + '"');
        }
    }

    TEST_CASE("short texts of a public call: every byte at every position") {
        for (std::size_t length = 1; length < 18; ++length) {
            for (std::size_t place = 0; place < length; ++place) {
                for (std::uint32_t code = 0; code < 0x80; ++code) {
                    Codes codes(length, 'b');
                    codes[place] = code;
                    Buffer buffer;
                    const std::string text(codes.begin(), codes.end());
                    append_utf8(buffer, text);
                    CHECK(buffer.view() == expected(codes));
                    buffer.clear();
                    append_name(buffer, ',', text);
                    CHECK(buffer.view() == ',' + expected(codes) + ':');
                }
            }
        }
    }

    TEST_CASE("numbers are formatted as in Python") {
        CHECK(number(0.0) == "0.0");
        CHECK(number(-0.0) == "-0.0");
        CHECK(number(1.0) == "1.0");
        CHECK(number(-2.5) == "-2.5");
        CHECK(number(0.1) == "0.1");
        CHECK(number(123456.0) == "123456.0");
        CHECK(number(0.0001) == "0.0001");
        CHECK(number(0.00001) == "1e-05");
        CHECK(number(1.5e-7) == "1.5e-07");
        CHECK(number(1e15) == "1000000000000000.0");
        CHECK(number(9999999999999998.0) == "9999999999999998.0");
        CHECK(number(1e16) == "1e+16");
        CHECK(number(1.2345e22) == "1.2345e+22");
        CHECK(number(1e100) == "1e+100");
        CHECK(number(std::numeric_limits<double>::max()) == "1.7976931348623157e+308");
        CHECK(number(std::numeric_limits<double>::min()) == "2.2250738585072014e-308");
        CHECK(number(std::numeric_limits<double>::denorm_min()) == "5e-324");
        Buffer buffer;
        CHECK_FALSE(append_number(buffer, std::numeric_limits<double>::quiet_NaN()));
        CHECK_FALSE(append_number(buffer, -std::numeric_limits<double>::infinity()));
        CHECK(buffer.view().empty());
        append_integer(buffer, std::numeric_limits<std::int64_t>::min());
        buffer.append(' ');
        append_integer(buffer, std::numeric_limits<std::int64_t>::max());
        CHECK(buffer.view() == "-9223372036854775808 9223372036854775807");
    }

    TEST_CASE("a buffer keeps its memory and grows little beyond its content") {
        Buffer buffer;
        append_utf8(buffer, std::string(1U << 20U, 'x'));
        CHECK(buffer.capacity_bytes() < (1U << 20U) + 4096);
        const std::size_t capacity = buffer.capacity_bytes();
        buffer.clear();
        append_utf8(buffer, std::string(1'000, 'x'));
        CHECK(buffer.capacity_bytes() == capacity);
        CHECK(buffer.size_bytes() == 1'002);
    }
}
