/* The stage of 16-bit activations on a host: sums become elements, 16 channels at a time. Where 32
 * bits hold them it is done in vectors, otherwise channel by channel; the rounding is the
 * definition's, and that of doubles is done in doubles, which this processor rounds as the
 * definition does in integers. */
#ifndef NK_WIDE_AVX2_H
#define NK_WIDE_AVX2_H

#include <math.h>

#include "wide.h"

#if NK_HAS_X86

#include <immintrin.h>

#define NK_WIDE_LANES 16

/* The channels' own columns of the table, and those of the vectors: products of 64 bits for even
 * and odd channels. */
typedef struct {
    int64_t bias[NK_WIDE_LANES], half[NK_WIDE_LANES];
    double factor[NK_WIDE_LANES];
    int32_t multiplier[NK_WIDE_LANES], shift[NK_WIDE_LANES];
    int is_short; /* nk_wide_is_short, and what follows is filled */
    int is_long;  /* sums of 64 bits can be rescaled in vectors */
    __m256i bias32[2], multiplier32[2], halves[2][2], shifts[2][2];
} nk_wide_lanes;

static inline void nk_wide_fill_short(nk_wide_lanes *k) {
    for (int v = 0; v < 2; ++v) {
        int32_t bias[8];
        int64_t half[2][4], shift[2][4];
        for (int m = 0; m < 8; ++m) {
            bias[m] = (int32_t)k->bias[8 * v + m];
            half[m % 2][m / 2] = k->half[8 * v + m];
            shift[m % 2][m / 2] = k->shift[8 * v + m];
        }
        k->bias32[v] = _mm256_loadu_si256((const __m256i *)(const void *)bias);
        k->multiplier32[v] =
            _mm256_loadu_si256((const __m256i *)(const void *)(k->multiplier + 8 * v));
        for (int odd = 0; odd < 2; ++odd) {
            k->halves[v][odd] = _mm256_loadu_si256((const __m256i *)(const void *)half[odd]);
            k->shifts[v][odd] = _mm256_loadu_si256((const __m256i *)(const void *)shift[odd]);
        }
    }
}

/* Constants of channels [channel, channel + count) whose sums have `terms` products. */
static inline nk_wide_lanes nk_wide_lanes_of(const nk_wide_stage *stage, size_t channel,
                                             uint32_t count, uint64_t terms) {
    nk_wide_lanes k;
    memset(&k, 0, offsetof(nk_wide_lanes, is_short));
    k.is_long = stage->rounding == NEUTRON_ROUNDING_SINGLE && !stage->narrow;
    for (uint32_t m = 0; m < count; ++m) {
        const uint8_t *at = stage->table + 4 * (channel + m) + stage->column;
        const int32_t multiplier = nk_load32(at), shift = nk_load32(at + stage->column);
        k.bias[m] = nk_wide_stage_bias(stage, channel + m);
        k.multiplier[m] = multiplier;
        k.shift[m] = nk_clamp(shift, 1, 62);
        k.half[m] = (int64_t)1 << (k.shift[m] - 1);
        k.is_long &= multiplier >= 0 && shift <= 32;
        const uint64_t mantissa = (uint64_t)((uint32_t)multiplier & 0x7FFFFFFFu) << 22 |
                                  ((uint32_t)shift >> 8 & 0x3FFFFFu);
        if (stage->rounding == NEUTRON_ROUNDING_EXACT53)
            k.factor[m] = ldexp((double)mantissa, -nk_clamp(shift & 0xFF, 1, 127));
    }
    k.is_short = nk_wide_is_short(stage, channel, count, terms);
    if (k.is_short) nk_wide_fill_short(&k);
    return k;
}

/* Elements of 16 bits to memory, clamped. */
static inline __attribute__((always_inline)) void nk_wide_put(const nk_wide_stage *stage,
                                                              __m256i words, uint32_t count,
                                                              uint8_t *to) {
    const __m256i low = _mm256_set1_epi16((int16_t)stage->low),
                  high = _mm256_set1_epi16((int16_t)stage->high);
    words = _mm256_min_epi16(_mm256_max_epi16(words, low), high);
    if (count == NK_WIDE_LANES) {
        _mm256_storeu_si256((__m256i *)(void *)to, words);
        return;
    }
    uint8_t some[2 * NK_WIDE_LANES];
    _mm256_storeu_si256((__m256i *)(void *)some, words);
    memcpy(to, some, 2 * (size_t)count);
}

/* Channels 4v to 4v + 3 from sums of 64 bits, before the clamp, in the low halves. The product with
 * a positive multiplier is one of 64 bits that wraps. Only the low 32 bits of a shifted product
 * count, and a shift is at most 32, so that the sign need not be shifted in. */
static inline __m256i nk_wide_rescale4(const nk_wide_lanes *k, const int64_t *acc, int v) {
    const __m256i *at = (const __m256i *)(const void *)(acc + 4 * v);
    const __m256i bias = _mm256_loadu_si256((const __m256i *)(const void *)(k->bias + 4 * v)),
                  half = _mm256_loadu_si256((const __m256i *)(const void *)(k->half + 4 * v));
    const __m128i *by = (const __m128i *)(const void *)(k->multiplier + 4 * v),
                  *shift = (const __m128i *)(const void *)(k->shift + 4 * v);
    const __m256i total = _mm256_add_epi64(_mm256_loadu_si256(at), bias);
    const __m256i factor = _mm256_cvtepu32_epi64(_mm_loadu_si128(by));
    const __m256i upper =
        _mm256_slli_epi64(_mm256_mul_epu32(_mm256_srli_epi64(total, 32), factor), 32);
    const __m256i product = _mm256_add_epi64(_mm256_mul_epu32(total, factor), upper);
    return _mm256_srlv_epi64(_mm256_add_epi64(product, half),
                             _mm256_cvtepu32_epi64(_mm_loadu_si128(shift)));
}

/* The low halves of two vectors: of each lane two numbers of either. */
static inline __m256i nk_low_halves(__m256i a, __m256i b) {
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}

static inline __m256i nk_wide_long16(const nk_wide_lanes *k, const int64_t *acc) {
    const __m256i first = nk_low_halves(nk_wide_rescale4(k, acc, 0), nk_wide_rescale4(k, acc, 1));
    const __m256i last = nk_low_halves(nk_wide_rescale4(k, acc, 2), nk_wide_rescale4(k, acc, 3));
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi32(first, last),
                                       _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* `count` channels of one pixel. */
static inline void nk_wide_finish(const nk_wide_stage *stage, const nk_wide_lanes *k,
                                  const int64_t *acc, uint32_t count, size_t channel, uint8_t *to) {
    if (k->is_long) {
        nk_wide_put(stage, nk_wide_long16(k, acc), count, to);
    } else if (stage->rounding == NEUTRON_ROUNDING_SINGLE && !stage->narrow) {
        for (uint32_t m = 0; m < count; ++m) {
            const uint64_t total = (uint64_t)acc[m] + (uint64_t)k->bias[m];
            const uint64_t product = total * (uint64_t)(int64_t)k->multiplier[m];
            const int64_t sum = (int64_t)(product + (uint64_t)k->half[m]);
            const int32_t value = (int32_t)(uint32_t)(uint64_t)(sum >> k->shift[m]);
            nk_store16(to + 2 * m, nk_clamp(value, stage->low, stage->high));
        }
    } else if (stage->rounding == NEUTRON_ROUNDING_EXACT53) {
        for (uint32_t m = 0; m < count; ++m) {
            const uint64_t wide = (uint64_t)acc[m] + (uint64_t)k->bias[m];
            const int64_t total = stage->narrow ? (int32_t)(uint32_t)wide : (int64_t)wide;
            double t = (double)total * k->factor[m];
            t = t < -2147483648.0 ? -2147483648.0 : t > 2147483647.0 ? 2147483647.0 : t;
            /* The largest number below one half: adding it and cutting rounds halves away. */
            const int32_t value = (int32_t)(t + copysign(0.49999999999999994, t));
            nk_store16(to + 2 * m, nk_clamp(value, stage->low, stage->high));
        }
    } else {
        for (uint32_t m = 0; m < count; ++m)
            nk_store16(to + 2 * m, nk_wide_stage_output(stage, channel + m, acc[m]));
    }
}

/* 8 channels from sums of 32 bits, before the clamp. */
static inline __attribute__((always_inline)) __m256i nk_wide_rescale8(const nk_wide_lanes *k,
                                                                      __m256i acc, const int v) {
    const __m256i total = _mm256_add_epi32(acc, k->bias32[v]);
    const __m256i even = _mm256_mul_epi32(total, k->multiplier32[v]);
    const __m256i odd =
        _mm256_mul_epi32(_mm256_srli_epi64(total, 32), _mm256_srli_epi64(k->multiplier32[v], 32));
    const __m256i first =
        _mm256_srlv_epi64(_mm256_add_epi64(even, k->halves[v][0]), k->shifts[v][0]);
    const __m256i second =
        _mm256_srlv_epi64(_mm256_add_epi64(odd, k->halves[v][1]), k->shifts[v][1]);
    return _mm256_blend_epi32(first, _mm256_slli_epi64(second, 32), 0xAA);
}

/* 16 channels in order, from sums of 32 bits of the first and of the last 8. */
static inline __attribute__((always_inline)) __m256i nk_wide_short16(const nk_wide_lanes *k,
                                                                     __m256i first, __m256i last) {
    const __m256i words =
        _mm256_packs_epi32(nk_wide_rescale8(k, first, 0), nk_wide_rescale8(k, last, 1));
    return _mm256_permute4x64_epi64(words, 0xD8);
}

/* nk_wide_finish from sums of 32 bits. */
static inline __attribute__((always_inline)) void nk_wide_finish32(const nk_wide_stage *stage,
                                                                   const nk_wide_lanes *k,
                                                                   __m256i first, __m256i last,
                                                                   uint32_t count, size_t channel,
                                                                   uint8_t *to) {
    if (k->is_short) {
        nk_wide_put(stage, nk_wide_short16(k, first, last), count, to);
        return;
    }
    int64_t sums[NK_WIDE_LANES];
    for (int v = 0; v < 2; ++v) {
        const __m256i eight = v ? last : first;
        _mm256_storeu_si256((__m256i *)(void *)(sums + 8 * v),
                            _mm256_cvtepi32_epi64(_mm256_castsi256_si128(eight)));
        _mm256_storeu_si256((__m256i *)(void *)(sums + 8 * v + 4),
                            _mm256_cvtepi32_epi64(_mm256_extracti128_si256(eight, 1)));
    }
    nk_wide_finish(stage, k, sums, count, channel, to);
}

#endif
#endif
