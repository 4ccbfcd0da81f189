/*
 *      Butterflies of the fast Hartley transform, eight at a time, with AVX2
 *
 * This file is not part of LAME 3.100. polymux adds it, under the same license: the GNU Library
 * General Public License, version 2 or later (see COPYING).
 *
 * All results are equal to those of the scalar code in fft.c, to the bit.
 */
#ifndef POLYMUX_FHT_AVX2_H
#define POLYMUX_FHT_AVX2_H

#include <immintrin.h>

/* Factors that fht() computes from one butterfly to the next, for each stage: a pair in costab. */
enum { max_butterflies = 128 };
static FLOAT factor_c1[TRI_SIZE][max_butterflies], factor_s1[TRI_SIZE][max_butterflies];
static FLOAT factor_c2[TRI_SIZE][max_butterflies], factor_s2[TRI_SIZE][max_butterflies];

static void
init_factors(void)
{
    int     stage, i;
    for (stage = 0; stage < TRI_SIZE; ++stage) {
        FLOAT const *const tri = costab + 2 * stage;
        FLOAT   c1 = tri[0], s1 = tri[1], c2;
        for (i = 1; i < max_butterflies; ++i) {
            factor_c1[stage][i] = c1;
            factor_s1[stage][i] = s1;
            factor_c2[stage][i] = 1 - (2 * s1) * s1;
            factor_s2[stage][i] = (2 * s1) * c1;
            c2 = c1;
            c1 = c2 * tri[0] - s1 * tri[1];
            s1 = c2 * tri[1] + s1 * tri[0];
        }
    }
}

inline static __m256
reversed(__m256 x)
{
    return _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}

/* p * x - q * y */
inline static __m256
difference(__m256 p, __m256 x, __m256 q, __m256 y)
{
    return _mm256_sub_ps(_mm256_mul_ps(p, x), _mm256_mul_ps(q, y));
}

/* p * x + q * y */
inline static __m256
sum(__m256 p, __m256 x, __m256 q, __m256 y)
{
    return _mm256_add_ps(_mm256_mul_ps(p, x), _mm256_mul_ps(q, y));
}

/* Computes as many butterflies of a stage as fit into registers. Returns the first that is left. */
static int
fht_stage(FLOAT * fz, FLOAT const *fn, int k1, int stage)
{
    int const k2 = 2 * k1, k3 = 3 * k1, k4 = 4 * k1;
    int     i;
    for (i = 1; i + 8 <= k1 / 2; i += 8) {
        __m256 const c1 = _mm256_loadu_ps(factor_c1[stage] + i);
        __m256 const s1 = _mm256_loadu_ps(factor_s1[stage] + i);
        __m256 const c2 = _mm256_loadu_ps(factor_c2[stage] + i);
        __m256 const s2 = _mm256_loadu_ps(factor_s2[stage] + i);
        FLOAT  *fi = fz + i;
        FLOAT  *gi = fz + k1 - i - 7; /* backwards */
        for (; fi < fn; fi += k4, gi += k4) {
            __m256 const fi_1 = _mm256_loadu_ps(fi + k1);
            __m256 const fi_3 = _mm256_loadu_ps(fi + k3);
            __m256 const gi_1 = reversed(_mm256_loadu_ps(gi + k1));
            __m256 const gi_3 = reversed(_mm256_loadu_ps(gi + k3));
            __m256  a, b, f0, f1, f2, f3, g0, g1, g2, g3;
            b = difference(s2, fi_1, c2, gi_1);
            a = sum(c2, fi_1, s2, gi_1);
            f0 = _mm256_loadu_ps(fi);
            f1 = _mm256_sub_ps(f0, a);
            f0 = _mm256_add_ps(f0, a);
            g0 = reversed(_mm256_loadu_ps(gi));
            g1 = _mm256_sub_ps(g0, b);
            g0 = _mm256_add_ps(g0, b);
            b = difference(s2, fi_3, c2, gi_3);
            a = sum(c2, fi_3, s2, gi_3);
            f2 = _mm256_loadu_ps(fi + k2);
            f3 = _mm256_sub_ps(f2, a);
            f2 = _mm256_add_ps(f2, a);
            g2 = reversed(_mm256_loadu_ps(gi + k2));
            g3 = _mm256_sub_ps(g2, b);
            g2 = _mm256_add_ps(g2, b);
            b = difference(s1, f2, c1, g3);
            a = sum(c1, f2, s1, g3);
            _mm256_storeu_ps(fi + k2, _mm256_sub_ps(f0, a));
            _mm256_storeu_ps(fi, _mm256_add_ps(f0, a));
            _mm256_storeu_ps(gi + k3, reversed(_mm256_sub_ps(g1, b)));
            _mm256_storeu_ps(gi + k1, reversed(_mm256_add_ps(g1, b)));
            b = difference(c1, g2, s1, f3);
            a = sum(s1, g2, c1, f3);
            _mm256_storeu_ps(gi + k2, reversed(_mm256_sub_ps(g0, a)));
            _mm256_storeu_ps(gi, reversed(_mm256_add_ps(g0, a)));
            _mm256_storeu_ps(fi + k3, _mm256_sub_ps(f1, b));
            _mm256_storeu_ps(fi + k1, _mm256_add_ps(f1, b));
        }
    }
    return i;
}

#endif
