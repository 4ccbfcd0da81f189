/*
 *      Quantization of eight lines at a time, with AVX2
 *
 * This file is not part of LAME 3.100. polymux adds it, under the same license: the GNU Library
 * General Public License, version 2 or later (see COPYING).
 *
 * All results are equal to those of the scalar code, to the bit.
 */
#ifndef POLYMUX_LINES_AVX2_H
#define POLYMUX_LINES_AVX2_H

#include <immintrin.h>

#include "quantize_pvt.h"
#include "tables.h"

/*
 * The scalar code rounds a line x to the nearest integer r, adds adj43asm[r], and rounds again, in
 * double precision. The result is r - 1 if x is less than a certain float, otherwise r.
 * least_of_index[r] is this float. The table has as many elements as two registers, because most
 * lines are small.
 */
enum { max_index = 15 };
extern FLOAT least_of_index[max_index + 1];
void    init_least_of_index(void);

/* Returns the elements `index` of a table of 16 floats. */
inline static __m256
look_up(const FLOAT * table, __m256i index)
{
    __m256 const low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), index);
    __m256 const high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), index);
    /* blendv looks at the sign. */
    __m256i const bit_3 = _mm256_slli_epi32(index, 28);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(bit_3));
}

/* Quantizes eight lines that are not negative. Returns 0 if one is too large for the table. */
inline static int
quantize_eight_lines(__m256 x, __m256i * quantized)
{
    /* The sum with 2^23 has no fraction, and the integer in its lowest bits. */
    __m256 const rounder = _mm256_set1_ps(8388608.0f);
    __m256i const r = _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(x, rounder)),
                                       _mm256_castps_si256(rounder));
    __m256i const too_large = _mm256_cmpgt_epi32(r, _mm256_set1_epi32(max_index));
    __m256 const is_less = _mm256_cmp_ps(x, look_up(least_of_index, r), _CMP_LT_OQ);
    *quantized = _mm256_add_epi32(r, _mm256_castps_si256(is_less));
    return _mm256_testz_si256(too_large, too_large);
}

/* Returns the maximum of at least eight integers. */
inline static int
max_of_integers(const int *begin, const int *end)
{
    __m256i max = _mm256_loadu_si256((__m256i const *) (end - 8));
    __m128i four, two;
    for (; end - begin > 8; begin += 8)
        max = _mm256_max_epi32(max, _mm256_loadu_si256((__m256i const *) begin));
    four = _mm_max_epi32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
    two = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 1)));
}

/* Returns the maximum of eight floats. */
inline static FLOAT
max_of_eight(__m256 eight)
{
    __m128  four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}

/*
 * Multiplies lines by a factor, and sets *max to the largest if it is larger. Returns how many
 * lines are done: all but less than eight.
 */
inline static int
amplify_lines(FLOAT * lines, int count, FLOAT factor, FLOAT * max)
{
    __m256  largest = _mm256_set1_ps(*max);
    int     i;
    for (i = 0; i + 8 <= count; i += 8) {
        __m256 const line = _mm256_mul_ps(_mm256_loadu_ps(lines + i), _mm256_set1_ps(factor));
        _mm256_storeu_ps(lines + i, line);
        largest = _mm256_max_ps(line, largest);
    }
    *max = max_of_eight(largest);
    return i;
}

/*
 * Sets `index` to x * length + y for eight pairs of lines. Lines above 15 count as 15. Returns the
 * number of lines from 15 on.
 */
inline static unsigned int
index_of_pairs(const int *lines, unsigned int length, uint32_t index[8])
{
    __m256i const fifteen = _mm256_set1_epi16(15);
    __m256i const first = _mm256_loadu_si256((__m256i const *) lines);
    __m256i const second = _mm256_loadu_si256((__m256i const *) (lines + 8));
    __m256i const all = _mm256_min_epi16(_mm256_packs_epi32(first, second), fifteen);
    __m256i const is_fifteen = _mm256_cmpeq_epi16(all, fifteen);
    __m256i const factors = _mm256_set1_epi32((int) (length | 1u << 16));
    _mm256_storeu_si256((__m256i *) index, _mm256_madd_epi16(all, factors));
    return _mm_popcnt_u32((unsigned int) _mm256_movemask_epi8(is_fifteen)) / 2;
}

/* Returns the number of lines up to the last that is not 0, in steps of eight, at most `count`. */
inline static int
lines_without_zeros(const int *lines, int count)
{
    while (count >= 8) {
        __m256i const last = _mm256_loadu_si256((__m256i const *) (lines + count - 8));
        if (!_mm256_testz_si256(last, last))
            break;
        count -= 8;
    }
    return count;
}

/*
 * Adds the lengths of the codes of four lines at a time, from the end, up to the first four with a
 * line above 1. Returns how many lines are left.
 */
inline static int
count_lines_up_to_one(const int *lines, int count, int *bits_32, int *bits_33)
{
    /* Elements of t32l and t33l for four lines of which the first is the lowest bit. */
    static const uint8_t reversed[16] = { 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15 };
    for (; count > 3; count -= 4) {
        __m128i const four = _mm_loadu_si128((__m128i const *) (lines + count - 4));
        int     p;
        if (!_mm_testz_si128(four, _mm_set1_epi32(~1)))
            break;
        p = reversed[_mm_movemask_ps(_mm_castsi128_ps(_mm_slli_epi32(four, 31)))];
        *bits_32 += t32l[p];
        *bits_33 += t33l[p];
    }
    return count;
}

/*
 * Adds the noise of 4 or 8 lines to *noise, in the order of the scalar code. Returns 0 if a line is
 * too large for the table, without adding.
 */
inline static int
add_noise_of_lines(const FLOAT * xr, const FLOAT * xr34, int count, FLOAT sfpow, FLOAT sfpow34,
                   FLOAT * noise)
{
    static const int mask[12] = { -1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0 };
    __m256i const lines = _mm256_loadu_si256((__m256i const *) (mask + 8 - count));
    __m256 const x34 = _mm256_mul_ps(_mm256_set1_ps(sfpow34), _mm256_maskload_ps(xr34, lines));
    __m256 const x = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_maskload_ps(xr, lines));
    __m256i quantized;
    __m256  error;
    __m256d first, second, pairs;
    __m128d sums;
    if (!quantize_eight_lines(x34, &quantized))
        return 0;
    error = _mm256_sub_ps(x, _mm256_mul_ps(_mm256_set1_ps(sfpow), look_up(pow43, quantized)));
    first = _mm256_cvtps_pd(_mm256_castps256_ps128(error));
    second = _mm256_cvtps_pd(_mm256_extractf128_ps(error, 1));
    pairs = _mm256_hadd_pd(_mm256_mul_pd(first, first), _mm256_mul_pd(second, second));
    sums = _mm_add_pd(_mm256_castpd256_pd128(pairs), _mm256_extractf128_pd(pairs, 1));
    *noise += _mm_cvtsd_f64(sums);
    /* Lines that were not loaded have no noise. */
    *noise += _mm_cvtsd_f64(_mm_unpackhi_pd(sums, sums));
    return 1;
}

#endif
