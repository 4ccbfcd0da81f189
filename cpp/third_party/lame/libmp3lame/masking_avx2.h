/*
 *      Spreading of masking over the partitions, 16 partitions at a time, with AVX2
 *
 * This file is not part of LAME 3.100. polymux adds it, under the same license: the GNU Library
 * General Public License, version 2 or later (see COPYING).
 *
 * All results are equal to those of the scalar code in psymodel.c, to the bit.
 */
#ifndef POLYMUX_MASKING_AVX2_H
#define POLYMUX_MASKING_AVX2_H

#include <immintrin.h>

#include "lines_avx2.h"

/*
 * vbrpsy_mask_add() for partitions that are at most mask_add_delta() apart: the factor of the sum for
 * each index (int) FAST_LOG10_X(ratio, 16.0f), and the least ratio with this index.
 */
static FLOAT const near_factor[] = {
    1.33352 * 1.33352, 1.35879 * 1.35879, 1.38454 * 1.38454, 1.39497 * 1.39497,
    1.40548 * 1.40548, 1.3537 * 1.3537, 1.30382 * 1.30382, 1.22321 * 1.22321,
    1.14758 * 1.14758,
    1
};
static FLOAT const near_ratio[] = {
    1, 0x1.279fd2p+0f, 0x1.5561aep+0f, 0x1.8a38a6p+0f, 0x1.c73d58p+0f, 0x1.06d9fp+1f,
    0x1.2f893p+1f, 0x1.5e848ap+1f, 0x1.94c58ap+1f,
    3.6517412725483771 /* ma_max_i1 */
};

/* vbrpsy_mask_add() for each of eight values. Those in `is_far` are far from each other. */
inline static __m256
masks_added(__m256 m1, __m256 m2, __m256i is_far, int some_near)
{
    __m256 const larger = _mm256_max_ps(m1, m2), smaller = _mm256_min_ps(m1, m2);
    /* If both are 0, the ratio is not a number, which is neither less nor greater than any. */
    __m256 const ratio = _mm256_div_ps(larger, smaller), sum = _mm256_add_ps(m1, m2);
    __m256 const below = _mm256_cmp_ps(ratio, _mm256_set1_ps(ma_max_i2), _CMP_LT_OQ);
    __m256 const distant = _mm256_blendv_ps(larger, sum, below);
    __m256 factor = _mm256_set1_ps(near_factor[0]);
    size_t  i;
    if (!some_near)
        return distant;
    for (i = 1; i < dimension_of(near_ratio); ++i) {
        __m256 const reached = _mm256_cmp_ps(ratio, _mm256_set1_ps(near_ratio[i]), _CMP_GE_OQ);
        factor = _mm256_blendv_ps(factor, _mm256_set1_ps(near_factor[i]), reached);
    }
    return _mm256_blendv_ps(_mm256_mul_ps(sum, factor), distant, _mm256_castsi256_ps(is_far));
}

/* Returns the maximum of `max` and the magnitudes from `begin` to `end`, a multiple of eight. */
inline static FLOAT
max_of_magnitudes(FLOAT max, FLOAT const *begin, FLOAT const *end)
{
    __m256  eight = _mm256_set1_ps(max);
    for (; begin < end; begin += 8) {
        __m256 const values = _mm256_loadu_ps(begin);
        eight = _mm256_max_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), values), eight);
    }
    return max_of_eight(eight);
}

/* Sets s3_columns from `s3`, in which each partition has a row. */
static int
init_s3_columns(PsyConst_CB2SB_t * gd, FLOAT const (*s3)[CBANDS])
{
    FLOAT  *column;
    int     b, kk, i;
    gd->s3_columns = column = lame_calloc(FLOAT, (size_t) CBANDS * CBANDS);
    if (!column)
        return -1;
    for (b = 0; b < gd->npart; b += 16) {
        int const end = Min(b + 16, gd->npart);
        int     first = CBANDS, last = 0;
        for (i = b; i < end; ++i) {
            first = Min(first, gd->s3ind[i][0]);
            last = Max(last, gd->s3ind[i][1]);
        }
        gd->s3_columns_ind[b / 16][0] = first;
        gd->s3_columns_ind[b / 16][1] = last;
        for (kk = first; kk <= last; ++kk) {
            for (i = b; i < end; ++i)
                column[i - b] = kk < gd->s3ind[i][0] || kk > gd->s3ind[i][1] ? 0 : s3[i][kk];
            column += 16;
        }
    }
    return 0;
}

/* Adds the masking that a partition causes in eight partitions, the first of which is `first`. */
inline static __m256
masking_added(__m256 sum, FLOAT const *column, __m256 energy, __m256 tonality, int distance,
              __m256i delta)
{
    __m256i const lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256 const strength =
        _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(column), energy), tonality);
    __m256i const apart = _mm256_abs_epi32(_mm256_sub_epi32(_mm256_set1_epi32(distance), lanes));
    __m256i const is_far = _mm256_cmpgt_epi32(apart, delta);
    return masks_added(sum, strength, is_far, distance >= -2 && distance < 8 + 2);
}

/* Returns mask_add_delta() of eight indexes, which may end after npart, but not after CBANDS. */
inline static __m256i
eight_deltas(unsigned char const *mask_idx)
{
    __m256i const index = _mm256_cvtepu8_epi32(_mm_loadl_epi64((__m128i const *) mask_idx));
    __m256i const first_eight = _mm256_loadu_si256((__m256i const *) tab_mask_add_delta);
    __m256i const is_last = _mm256_cmpeq_epi32(index, _mm256_set1_epi32(8)); /* delta is -1 */
    return _mm256_or_si256(_mm256_permutevar8x32_epi32(first_eight, index), is_last);
}

/* Spreads the energies `eb` to `masking`, which has CBANDS values. */
static void
spread_masking(PsyConst_CB2SB_t const *gd, FLOAT const *eb, unsigned char const *mask_idx,
               FLOAT * masking)
{
    FLOAT const *column = gd->s3_columns;
    FLOAT   tonality[CBANDS];
    int     b, kk;
    for (b = 0; b < gd->npart; ++b)
        tonality[b] = tab[mask_idx[b]];
    /* An addition waits for the one before. So two groups of eight run side by side. */
    for (b = 0; b < gd->npart; b += 16) {
        __m256i const delta = eight_deltas(mask_idx + b), delta_8 = eight_deltas(mask_idx + b + 8);
        __m256  sum = _mm256_setzero_ps(), sum_8 = _mm256_setzero_ps();
        int const last = gd->s3_columns_ind[b / 16][1];
        for (kk = gd->s3_columns_ind[b / 16][0]; kk <= last; ++kk, column += 16) {
            __m256 const energy = _mm256_set1_ps(eb[kk]), tone = _mm256_set1_ps(tonality[kk]);
            sum = masking_added(sum, column, energy, tone, kk - b, delta);
            sum_8 = masking_added(sum_8, column + 8, energy, tone, kk - b - 8, delta_8);
        }
        _mm256_storeu_ps(masking + b, sum);
        _mm256_storeu_ps(masking + b + 8, sum_8);
    }
}

#endif
