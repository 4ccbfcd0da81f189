// Searches bytes, sixteen at a time if the processor supports it. The portable versions are always
// built and tested. All versions need at least `Block::padding_bytes` readable bytes after the end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace polymux::stream {

namespace plain {

/// The first CR or LF, or `end`.
inline const char* find_line_end(const char* at, const char* end) noexcept {
    while (at < end && *at != '\n' && *at != '\r') ++at;
    return at;
}

/// The first byte that may end or change the body of a JSON string: a quote, a backslash or a
/// control byte. One of them must exist. `bits` collects the high bits: 0x80 if any byte is not
/// ASCII.
inline const char* find_special(const char* at, unsigned& bits) noexcept {
    for (;; ++at) {
        const auto byte = static_cast<unsigned char>(*at);
        if (byte == '"' || byte == '\\' || byte < 0x20) return at;
        bits |= byte & 0x80U;
    }
}

}  // namespace plain

#if defined(__SSE2__)

namespace simd {

inline __m128i load(const char* at) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

inline __m128i line_ends(__m128i bytes) noexcept {
    return _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')),
                        _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')));
}

inline unsigned mask_of(__m128i bytes) noexcept {
    return static_cast<unsigned>(_mm_movemask_epi8(bytes));
}

inline const char* find_line_end(const char* at, const char* end) noexcept {
    for (; end - at >= 64; at += 64) {
        const __m128i first = line_ends(load(at));
        const __m128i second = line_ends(load(at + 16));
        const __m128i third = line_ends(load(at + 32));
        const __m128i fourth = line_ends(load(at + 48));
        if (mask_of(_mm_or_si128(_mm_or_si128(first, second), _mm_or_si128(third, fourth))) == 0) {
            continue;
        }
        const std::uint64_t mask =
            std::uint64_t{mask_of(first)} | std::uint64_t{mask_of(second)} << 16U |
            std::uint64_t{mask_of(third)} << 32U | std::uint64_t{mask_of(fourth)} << 48U;
        return at + std::countr_zero(mask);
    }
    for (; at < end; at += 16) {
        if (const unsigned mask = mask_of(line_ends(load(at))); mask != 0) {
            const char* const found = at + std::countr_zero(mask);
            return found < end ? found : end;
        }
    }
    return end;
}

inline const char* find_special(const char* at, unsigned& bits) noexcept {
    for (;; at += 16) {
        const __m128i bytes = load(at);
        const __m128i controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
        const __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                           _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
        const unsigned special = mask_of(_mm_or_si128(controls, marks));
        const unsigned high = mask_of(bytes);
        if (special == 0) {
            bits |= high != 0 ? 0x80U : 0U;
            continue;
        }
        const int index = std::countr_zero(special);
        bits |= (high & ((1U << static_cast<unsigned>(index)) - 1U)) != 0 ? 0x80U : 0U;
        return at + index;
    }
}

}  // namespace simd

using simd::find_line_end;
using simd::find_special;

#else

using plain::find_line_end;
using plain::find_special;

#endif

}  // namespace polymux::stream
