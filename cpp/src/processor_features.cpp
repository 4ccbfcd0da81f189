#include "processor_features.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>

namespace polymux::internal {

#if defined(__x86_64__)

namespace {

struct Features {
    bool sse4 = false;
    bool avx2 = false;
};

constexpr bool has_all(std::uint32_t bits, std::uint32_t wanted) noexcept {
    return (bits & wanted) == wanted;
}

/// Whether the kernel saves the registers of SSE and AVX (bits 1 and 2 of the register XCR0).
bool saves_avx_registers() noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return has_all(low, 0x6);
}

Features read_features() noexcept {
    Features found;
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    std::uint32_t c = 0;
    std::uint32_t d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) return found;
    found.sse4 = has_all(c, bit_SSE4_2 | bit_POPCNT);
    if (!has_all(c, bit_OSXSAVE | bit_AVX) || !saves_avx_registers()) return found;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
    found.avx2 = found.sse4 && has_all(b, bit_AVX2 | bit_BMI | bit_BMI2);
    return found;
}

const Features& features() noexcept {
    static const Features found = read_features();
    return found;
}

}  // namespace

bool has_sse4() noexcept {
    return features().sse4;
}

bool has_avx2() noexcept {
    return features().avx2;
}

#else

bool has_sse4() noexcept {
    return false;
}

bool has_avx2() noexcept {
    return false;
}

#endif

}  // namespace polymux::internal
