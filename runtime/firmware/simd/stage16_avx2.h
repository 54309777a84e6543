/* The requantize stage for accumulators of 16 channels in their natural order, with the offset of
 * 2^31. */
#ifndef NK_STAGE16_AVX2_H
#define NK_STAGE16_AVX2_H

#include "stage_avx2.h"

#if NK_HAS_X86

/* Each for |bias| and for the sum of products, so that |acc| < 2^30 */
#define NK_ACC_LIMIT (1 << 29)

typedef struct {
    nk_lanes8 half[2];
    int fast; /* 0: some channel needs the definition's arithmetic */
} nk_lanes16;

/* Up to 8 INT32 of a table; the others are 0. */
static inline __m256i nk_column8(const uint8_t *at, uint32_t count) {
    int32_t values[8] = {0};
    memcpy(values, at, 4 * (size_t)(count < 8 ? count : 8));
    return _mm256_loadu_si256((const __m256i *)(const void *)values);
}

/* Constants of channels [channel, channel + count) of a stage. */
static inline nk_lanes16 nk_lanes16_of(const nk_stage *stage, size_t channel, uint32_t count) {
    nk_lanes16 k;
    k.fast = 1;
    for (uint32_t i = 0; i < 2; ++i) {
        const uint8_t *at = stage->table + 4 * (channel + 8 * i);
        const uint32_t left = count > 8 * i ? count - 8 * i : 0;
        const __m256i bias = nk_column8(at, left), m = nk_column8(at + stage->column, left);
        const __m256i raw =
            _mm256_max_epi32(nk_column8(at + 2 * stage->column, left), _mm256_set1_epi32(-31));
        k.half[i] = nk_lanes8_of(m, _mm256_sub_epi32(_mm256_setzero_si256(), raw));
        const __m256i wide =
            _mm256_cmpgt_epi32(_mm256_abs_epi32(bias), _mm256_set1_epi32(NK_ACC_LIMIT - 1));
        const __m256i odd = _mm256_or_si256(_mm256_or_si256(m, _mm256_abs_epi32(bias)),
                                            wide); /* |INT32_MIN| is negative */
        const __m256i left_shift = _mm256_cmpgt_epi32(raw, _mm256_setzero_si256());
        k.fast &= _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_or_si256(odd, left_shift))) == 0;
    }
    return k;
}

/* Two pixels of accumulators, `stride` lanes apart, to 2 x 16 bytes. */
static inline __attribute__((always_inline)) __m256i nk_stage16_two(const nk_clamps8 *c,
                                                                    const nk_lanes16 *k,
                                                                    const int32_t *acc,
                                                                    size_t stride) {
    __m256i v[4];
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j)
        v[j] = nk_rescale8(
            &k->half[j % 2],
            _mm256_loadu_si256((const __m256i *)(const void *)(acc + j / 2 * stride + j % 2 * 8)));
    return nk_bytes32(c, v[0], v[1], v[2], v[3]);
}

/* `count` pixels of accumulators for `channels` <= 16 channels from `channel` on; `fits` is what
 * nk_clamps8_of answered. */
static __attribute__((noinline)) void nk_stage16(const nk_stage *stage, const nk_clamps8 *clamps,
                                                 int fits, const nk_lanes16 *lanes, size_t channel,
                                                 uint32_t channels, const int32_t *acc,
                                                 size_t stride, uint32_t count, uint8_t *to,
                                                 size_t pixel) {
    if (!fits || !lanes->fast || stage->rounding != NEUTRON_ROUNDING_DOUBLE) {
        for (uint32_t i = 0; i < count; ++i, acc += stride, to += pixel)
            for (uint32_t c = 0; c < channels; ++c)
                to[c] =
                    nk_stage_output(stage, channel + c, (int32_t)((uint32_t)acc[c] ^ 0x80000000u));
        return;
    }
    const nk_clamps8 c = *clamps;
    const nk_lanes16 k = *lanes;
    for (uint32_t i = 0; i < count; i += 2, acc += 2 * stride, to += 2 * pixel) {
        const __m256i bytes = nk_stage16_two(&c, &k, acc, i + 1 < count ? stride : 0);
        uint8_t rest[32];
        uint8_t *first = to, *second = to + pixel;
        if (channels == 16) {
            _mm_storeu_si128((__m128i *)(void *)first, _mm256_castsi256_si128(bytes));
            if (i + 1 < count)
                _mm_storeu_si128((__m128i *)(void *)second, _mm256_extracti128_si256(bytes, 1));
        } else {
            _mm256_storeu_si256((__m256i *)(void *)rest, bytes);
            memcpy(first, rest, channels);
            if (i + 1 < count) memcpy(second, rest + 16, channels);
        }
        if (!stage->lut) continue;
        for (uint32_t b = 0; b < channels; ++b) first[b] = stage->lut[first[b]];
        for (uint32_t b = 0; b < channels && i + 1 < count; ++b) second[b] = stage->lut[second[b]];
    }
}

#endif
#endif
