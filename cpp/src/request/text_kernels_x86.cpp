// Works on blocks of 16 or 32 bytes. A block is copied if no byte needs escaping, converted to
// UTF-8 by one shuffle if no character needs escaping, and otherwise written byte by byte.
#if defined(__x86_64__)

#include <immintrin.h>

#include <array>

#include "request/text_kernels.hpp"

// Functions that call each other must have the same target to be inlined.
#define POLYMUX_SSE4 [[gnu::target("sse4.2,popcnt")]]
#define POLYMUX_AVX2 [[gnu::target("avx2,bmi,popcnt")]]

namespace polymux::json {

extern const TextKernels sse4_kernels;
extern const TextKernels avx2_kernels;

namespace {

constexpr std::size_t lane_bytes = 16;
constexpr int many_escapes = 3;  // From here on, spelling out a whole block is faster.

// Room for a block that is spelled out, and for the block stored after it.
constexpr std::size_t slack_bytes = 2 * lane_bytes * max_escape_bytes + 2 * lane_bytes;

using Shuffles = std::array<std::array<std::uint8_t, lane_bytes>, 256>;

/// Packs eight lanes of two bytes. The second byte counts if the lane's bit is set.
constexpr Shuffles make_shuffles_of_two() {
    Shuffles shuffles{};
    for (unsigned key = 0; key < shuffles.size(); ++key) {
        std::size_t to = 0;
        for (unsigned lane = 0; lane < 8; ++lane) {
            shuffles[key][to++] = static_cast<std::uint8_t>(2 * lane);
            if ((key >> lane & 1U) != 0) {
                shuffles[key][to++] = static_cast<std::uint8_t>(2 * lane + 1);
            }
        }
        while (to < lane_bytes) shuffles[key][to++] = 0x80;
    }
    return shuffles;
}

/// Packs four lanes of four bytes, keeping the last bytes of each: one, plus one for the lane's bit
/// in the low half of the key, plus two for its bit in the high half.
constexpr Shuffles make_shuffles_of_four() {
    Shuffles shuffles{};
    for (unsigned key = 0; key < shuffles.size(); ++key) {
        std::size_t to = 0;
        for (unsigned lane = 0; lane < 4; ++lane) {
            const unsigned length = 1 + (key >> lane & 1U) + 2 * (key >> (4 + lane) & 1U);
            for (unsigned byte = 4 - length; byte < 4; ++byte) {
                shuffles[key][to++] = static_cast<std::uint8_t>(4 * lane + byte);
            }
        }
        while (to < lane_bytes) shuffles[key][to++] = 0x80;
    }
    return shuffles;
}

constexpr Shuffles shuffles_of_two = make_shuffles_of_two();
constexpr Shuffles shuffles_of_four = make_shuffles_of_four();

POLYMUX_SSE4 inline __m128i load_lanes(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

POLYMUX_SSE4 inline void store(char* to, __m128i value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}

POLYMUX_SSE4 inline unsigned bits(__m128i bytes) {
    return static_cast<unsigned>(_mm_movemask_epi8(bytes));
}

POLYMUX_SSE4 inline unsigned lane_bits(__m128i lanes) {
    return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(lanes)));
}

/// Sets a bit for each byte that needs escaping.
POLYMUX_SSE4 inline unsigned escapes(__m128i bytes) {
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
    const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    return bits(_mm_or_si128(control, _mm_or_si128(quote, backslash)));
}

POLYMUX_SSE4 inline char* spell_out(char* at, const std::uint8_t* text, std::size_t count,
                                    const Spelling* spellings) {
    for (std::size_t index = 0; index < count; ++index)
        at = put_spelling(at, spellings[text[index]]);
    return at;
}

/// Eight characters below U+0800, without escapes.
POLYMUX_SSE4 [[gnu::always_inline]] inline void put_two(Out& out, __m128i characters) {
    const __m128i ascii = _mm_cmplt_epi16(characters, _mm_set1_epi16(0x80));
    const __m128i lead = _mm_srli_epi16(characters, 6);
    const __m128i rest = _mm_slli_epi16(_mm_and_si128(characters, _mm_set1_epi16(0x3F)), 8);
    const __m128i marks = _mm_set1_epi16(static_cast<short>(0x80C0));
    const __m128i two = _mm_or_si128(_mm_or_si128(lead, rest), marks);
    const __m128i lanes = _mm_blendv_epi8(two, characters, ascii);
    const unsigned key = ~bits(_mm_packs_epi16(ascii, ascii)) & 0xFFU;
    store(out.at, _mm_shuffle_epi8(lanes, load_lanes(shuffles_of_two[key].data())));
    out.at += 8 + __builtin_popcount(key);
}

/// Four valid characters without escapes.
POLYMUX_SSE4 [[gnu::always_inline]] inline void put_four(Out& out, __m128i characters) {
    const __m128i over_1 = _mm_cmpgt_epi32(characters, _mm_set1_epi32(0x7F));
    const __m128i over_2 = _mm_cmpgt_epi32(characters, _mm_set1_epi32(0x7FF));
    const __m128i over_3 = _mm_cmpgt_epi32(characters, _mm_set1_epi32(0xFFFF));
    // The character's bits, six per byte, the last six in the lane's last byte ...
    const __m128i last = _mm_and_si128(_mm_slli_epi32(characters, 24), _mm_set1_epi32(0x3F000000));
    const __m128i third = _mm_and_si128(_mm_slli_epi32(characters, 10), _mm_set1_epi32(0x3F0000));
    const __m128i second = _mm_and_si128(_mm_srli_epi32(characters, 4), _mm_set1_epi32(0x3F00));
    const __m128i first = _mm_srli_epi32(characters, 18);
    // ... the marks of leading and following bytes, each length over the shorter one ...
    const __m128i marks_2 = _mm_and_si128(over_1, _mm_set1_epi32(static_cast<int>(0x80C00000U)));
    const __m128i marks_3 = _mm_and_si128(over_2, _mm_set1_epi32(0x0040E000));
    const __m128i marks_4 = _mm_and_si128(over_3, _mm_set1_epi32(0x000060F0));
    const __m128i marks = _mm_xor_si128(marks_2, _mm_xor_si128(marks_3, marks_4));
    // ... and ASCII's seventh bit.
    const __m128i seventh = _mm_andnot_si128(over_1, _mm_slli_epi32(characters, 24));
    const __m128i lanes = _mm_or_si128(_mm_or_si128(_mm_or_si128(last, third), seventh),
                                       _mm_or_si128(_mm_or_si128(second, first), marks));
    const unsigned odd = lane_bits(_mm_xor_si128(over_1, _mm_xor_si128(over_2, over_3)));
    const unsigned two = lane_bits(over_2);
    store(out.at, _mm_shuffle_epi8(lanes, load_lanes(shuffles_of_four[odd | two << 4U].data())));
    out.at += 4 + __builtin_popcount(odd) + 2 * __builtin_popcount(two);
}

/// Whether any of four numbers needs escaping or is not a character.
POLYMUX_SSE4 inline bool is_special(__m128i characters) {
    const __m128i low = _mm_cmplt_epi32(characters, _mm_set1_epi32(0x20));
    const __m128i quote = _mm_cmpeq_epi32(characters, _mm_set1_epi32('"'));
    const __m128i backslash = _mm_cmpeq_epi32(characters, _mm_set1_epi32('\\'));
    const __m128i surrogate =
        _mm_cmpeq_epi32(_mm_srli_epi32(characters, 11), _mm_set1_epi32(0xD800 >> 11));
    const __m128i beyond = _mm_cmpgt_epi32(characters, _mm_set1_epi32(0x10FFFF));
    const __m128i any = _mm_or_si128(_mm_or_si128(low, _mm_or_si128(quote, backslash)),
                                     _mm_or_si128(surrogate, beyond));
    return lane_bits(any) != 0;
}

POLYMUX_SSE4 inline __m128i load_four(const std::uint32_t* text) {
    return load_lanes(text);
}
POLYMUX_SSE4 inline __m128i load_four(const std::uint16_t* text) {
    return _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(text)));
}

/// Narrows sixteen characters to bytes if all are ASCII.
POLYMUX_SSE4 inline bool narrow(const std::uint16_t* text, __m128i& bytes) {
    const __m128i a = load_lanes(text);
    const __m128i b = load_lanes(text + 8);
    const __m128i high = _mm_set1_epi16(static_cast<short>(0xFF80));
    if (_mm_testz_si128(_mm_or_si128(a, b), high) == 0) return false;
    bytes = _mm_packus_epi16(a, b);
    return true;
}

POLYMUX_SSE4 inline bool narrow(const std::uint32_t* text, __m128i& bytes) {
    const __m128i a = load_lanes(text);
    const __m128i b = load_lanes(text + 4);
    const __m128i c = load_lanes(text + 8);
    const __m128i d = load_lanes(text + 12);
    const __m128i all = _mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d));
    if (_mm_testz_si128(all, _mm_set1_epi32(~0x7F)) == 0) return false;
    bytes = _mm_packus_epi16(_mm_packus_epi32(a, b), _mm_packus_epi32(c, d));
    return true;
}

/// Writes one character after the other. Returns null if one is invalid.
template <typename Unit>
POLYMUX_SSE4 char* put_each(char* at, const Unit* text, std::size_t count) {
    for (std::size_t index = 0; index < count && at != nullptr; ++index) {
        at = put_character(at, text[index]);
    }
    return at;
}

/// Sixteen characters, not all ASCII.
template <typename Unit>
POLYMUX_SSE4 [[gnu::always_inline]] inline bool put_sixteen(Out& out, const Unit* text) {
    for (std::size_t index = 0; index < lane_bytes; index += 4) {
        const __m128i characters = load_four(text + index);
        if (is_special(characters)) {
            char* const next = put_each(out.at, text + index, 4);
            if (next == nullptr) return false;
            out.at = next;
        } else {
            put_four(out, characters);
        }
    }
    return true;
}

template <typename Unit>
POLYMUX_SSE4 bool put_units_simd(Buffer& buffer, const Unit* text, std::size_t count) {
    Out out(buffer, count + slack_bytes);
    while (count >= lane_bytes) {
        out.more(slack_bytes, count + count / 2);
        __m128i bytes;
        if (!narrow(text, bytes)) {
            if (!put_sixteen(out, text)) return false;
        } else if (escapes(bytes) == 0) {
            store(out.at, bytes);
            out.at += lane_bytes;
        } else {
            std::array<std::uint8_t, lane_bytes> narrowed;
            _mm_storeu_si128(reinterpret_cast<__m128i*>(narrowed.data()), bytes);
            out.at = spell_out(out.at, narrowed.data(), lane_bytes, utf8_spellings);
        }
        text += lane_bytes;
        count -= lane_bytes;
    }
    out.more(slack_bytes, 0);
    char* const end = put_each(out.at, text, count);
    if (end == nullptr) return false;
    out.at = end;
    out.finish();
    return true;
}

/// Writes the remainder of a text of at least 16 bytes. If its last 16 are all plain, copies them
/// again.
POLYMUX_SSE4 [[gnu::always_inline]] inline void put_rest(Out& out, const std::uint8_t* text,
                                                         std::size_t count,
                                                         const Spelling* spellings,
                                                         bool high_is_plain) {
    if (count == 0) return;
    const __m128i bytes = load_lanes(text + count - lane_bytes);
    if ((escapes(bytes) | (high_is_plain ? 0U : bits(bytes))) == 0) {
        store(out.at + count - lane_bytes, bytes);
        out.at += count;
    } else {
        out.more(slack_bytes, 0);
        out.at = spell_out(out.at, text, count, spellings);
    }
}

/// Writes one block that needs escaping. Returns how much of it was consumed.
POLYMUX_SSE4 [[gnu::always_inline]] inline std::size_t put_escapes(Out& out,
                                                                   const std::uint8_t* text,
                                                                   unsigned found,
                                                                   std::size_t count) {
    if (__builtin_popcount(found) > many_escapes) {
        out.at = spell_out(out.at, text, count, utf8_spellings);
        return count;
    }
    const auto plain = static_cast<std::size_t>(__builtin_ctz(found));
    out.at += plain;  // The whole block has been stored.
    out.at = put_spelling(out.at, utf8_spellings[text[plain]]);
    return plain + 1;
}

POLYMUX_SSE4 void put_utf8_sse4(Buffer& buffer, const std::uint8_t* text, std::size_t count) {
    Out out(buffer, count + slack_bytes);
    const bool is_short = count < lane_bytes;
    while (count >= lane_bytes) {
        const __m128i bytes = load_lanes(text);
        const unsigned found = escapes(bytes);
        std::size_t done = lane_bytes;
        if (found == 0) {
            store(out.at, bytes);
            out.at += lane_bytes;
        } else {
            out.more(count + slack_bytes, count / 4);
            store(out.at, bytes);
            done = put_escapes(out, text, found, lane_bytes);
        }
        text += done;
        count -= done;
    }
    if (is_short) {
        out.at = spell_out(out.at, text, count, utf8_spellings);
    } else {
        put_rest(out, text, count, utf8_spellings, true);
    }
    out.finish();
}

POLYMUX_SSE4 void put_latin1_sse4(Buffer& buffer, const std::uint8_t* text, std::size_t count) {
    Out out(buffer, count + slack_bytes);
    const bool is_short = count < lane_bytes;
    while (count >= lane_bytes) {
        const __m128i bytes = load_lanes(text);
        const unsigned found = escapes(bytes);
        out.more(slack_bytes, count + count / 4);
        if ((found | bits(bytes)) == 0) {
            store(out.at, bytes);
            out.at += lane_bytes;
        } else if (found == 0) {
            put_two(out, _mm_cvtepu8_epi16(bytes));
            put_two(out, _mm_cvtepu8_epi16(_mm_srli_si128(bytes, 8)));
        } else {
            out.at = spell_out(out.at, text, lane_bytes, latin1_spellings);
        }
        text += lane_bytes;
        count -= lane_bytes;
    }
    if (is_short) {
        out.at = spell_out(out.at, text, count, latin1_spellings);
    } else {
        out.more(slack_bytes, 0);
        put_rest(out, text, count, latin1_spellings, false);
    }
    out.finish();
}

POLYMUX_AVX2 inline unsigned escapes(__m256i bytes) {
    const __m256i control =
        _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1F)), bytes);
    const __m256i quote = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('"'));
    const __m256i backslash = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\\'));
    const __m256i any = _mm256_or_si256(control, _mm256_or_si256(quote, backslash));
    return static_cast<unsigned>(_mm256_movemask_epi8(any));
}

POLYMUX_AVX2 void put_utf8_avx2(Buffer& buffer, const std::uint8_t* text, std::size_t count) {
    constexpr std::size_t wide_bytes = 32;
    if (count < 2 * wide_bytes) {
        put_utf8_sse4(buffer, text, count);
        return;
    }
    Out out(buffer, count + slack_bytes);
    while (count >= wide_bytes) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text));
        const unsigned found = escapes(bytes);
        std::size_t done = wide_bytes;
        if (found != 0) out.more(count + slack_bytes, count / 4);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.at), bytes);
        if (found == 0) {
            out.at += wide_bytes;
        } else {
            done = put_escapes(out, text, found, wide_bytes);
        }
        text += done;
        count -= done;
    }
    if (count > lane_bytes) {
        const __m128i bytes = load_lanes(text);
        if (escapes(bytes) == 0) {
            store(out.at, bytes);
            out.at += lane_bytes;
            text += lane_bytes;
            count -= lane_bytes;
        }
    }
    if (count > lane_bytes) {
        out.more(slack_bytes, 0);
        out.at = spell_out(out.at, text, count, utf8_spellings);
    } else {
        put_rest(out, text, count, utf8_spellings, true);
    }
    out.finish();
}

}  // namespace

const TextKernels sse4_kernels = {
    .utf8 = put_utf8_sse4,
    .latin1 = put_latin1_sse4,
    .ucs2 = put_units_simd<std::uint16_t>,
    .ucs4 = put_units_simd<std::uint32_t>,
};

const TextKernels avx2_kernels = {
    .utf8 = put_utf8_avx2,
    .latin1 = put_latin1_sse4,
    .ucs2 = put_units_simd<std::uint16_t>,
    .ucs4 = put_units_simd<std::uint32_t>,
};

}  // namespace polymux::json

#endif
