/*
 *      Window of the polyphase filter bank, for eight subbands at a time, with AVX2
 *
 * This file is not part of LAME 3.100. polymux adds it, under the same license: the GNU Library
 * General Public License, version 2 or later (see COPYING).
 *
 * All results are equal to those of the scalar code in newmdct.c, to the bit.
 */
#ifndef POLYMUX_WINDOW_AVX2_H
#define POLYMUX_WINDOW_AVX2_H

#include <immintrin.h>

enum { window_rows = 15, window_taps = 18 };
/* enwindow without its last row, one column after the other. */
static FLOAT window_columns[window_taps][window_rows + 1];

void
init_window(void)
{
    int     row, tap;
    for (row = 0; row < window_rows; ++row)
        for (tap = 0; tap < window_taps; ++tap)
            window_columns[tap][row] = enwindow[row * window_taps + tap];
}

inline static __m256
backwards(const sample_t * x)
{
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(x - 7),
                                    _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}

/* Computes the pairs a[2 * row] and a[2 * row + 1] of eight rows, as window_subband does. */
inline static void
window_eight_rows(const sample_t * x1, const sample_t * x2, FLOAT a[SBLIMIT], int row)
{
    __m256  s = _mm256_setzero_ps(), t = s, w;
    __m256  even, odd;
    int     tap;
    x1 -= row;
    x2 += row;
    for (tap = 0; tap < 8; ++tap) {
        int const at = 64 * tap - 224;
        __m256 const later = _mm256_loadu_ps(x2 + at);
        __m256 const earlier = backwards(x1 - at);
        w = _mm256_loadu_ps(window_columns[tap] + row);
        s = tap == 0 ? _mm256_mul_ps(later, w) : _mm256_add_ps(s, _mm256_mul_ps(later, w));
        t = tap == 0 ? _mm256_mul_ps(earlier, w) : _mm256_add_ps(t, _mm256_mul_ps(earlier, w));
    }
    for (tap = 8; tap < 16; ++tap) {
        int const at = 64 * tap - 768;
        w = _mm256_loadu_ps(window_columns[tap] + row);
        s = _mm256_add_ps(s, _mm256_mul_ps(backwards(x1 + at), w));
        t = _mm256_sub_ps(t, _mm256_mul_ps(_mm256_loadu_ps(x2 - at), w));
    }
    s = _mm256_mul_ps(s, _mm256_loadu_ps(window_columns[16] + row));
    even = _mm256_add_ps(t, s);
    odd = _mm256_mul_ps(_mm256_loadu_ps(window_columns[17] + row), _mm256_sub_ps(t, s));
    {
        __m256 const low = _mm256_unpacklo_ps(even, odd);
        __m256 const high = _mm256_unpackhi_ps(even, odd);
        _mm256_storeu_ps(a + 2 * row, _mm256_permute2f128_ps(low, high, 0x20));
        _mm256_storeu_ps(a + 2 * row + 8, _mm256_permute2f128_ps(low, high, 0x31));
    }
}

#endif
