/* Products of 16-bit activations in a panel with rearranged weights of 16 output channels: pairs of
 * inputs, [inputs / 2][16 outputs][2], so that one broadcast pair meets all outputs and nothing is
 * added across lanes. Shared by the loops for activations of 8 and of 16 bits. */
#ifndef NK_PRODUCTS_AVX2_H
#define NK_PRODUCTS_AVX2_H

#include "dense.h"

#if NK_HAS_X86

#include <immintrin.h>

#define LANES 16
/* 12 accumulators leave registers for two vectors of weights and two broadcasts. */
#define MAX_TILE 6

/* One block of each of two groups: [8][8] bytes twice to [4 pairs][16 outputs][2]. The second group
 * may be absent. */
static inline void expand(const int8_t *low, const int8_t *high, int8_t *to) {
    __m256i x[4], y[4];
    for (int i = 0; i < 4; ++i) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(low + 16 * i));
        const __m128i b = high ? _mm_loadu_si128((const __m128i *)(const void *)(high + 16 * i))
                               : _mm_setzero_si128();
        x[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    }
    for (int i = 0; i < 2; ++i) {
        const __m256i a = _mm256_unpacklo_epi16(x[2 * i], x[2 * i + 1]),
                      b = _mm256_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
        y[2 * i] = _mm256_unpacklo_epi16(a, b);
        y[2 * i + 1] = _mm256_unpackhi_epi16(a, b);
    }
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_unpacklo_epi64(y[0], y[2]));
    _mm256_storeu_si256((__m256i *)(void *)(to + 32), _mm256_unpackhi_epi64(y[0], y[2]));
    _mm256_storeu_si256((__m256i *)(void *)(to + 64), _mm256_unpacklo_epi64(y[1], y[3]));
    _mm256_storeu_si256((__m256i *)(void *)(to + 96), _mm256_unpackhi_epi64(y[1], y[3]));
}

/* A part of all inputs: `outer` runs of `length` blocks, from block `skip` of each run on. */
typedef struct {
    uint32_t outer, length;
    size_t outer_step;
} part;

/* P pixels times 16 channels; accumulators of a pixel are LANES apart. They begin with `start`, or
 * where that is NULL with what they hold. */
static inline __attribute__((always_inline)) void tile(const part *t, const uint8_t *panel,
                                                       size_t step, const int8_t *weights,
                                                       const __m256i *start, int32_t *acc,
                                                       const int P) {
    __m256i sum[MAX_TILE][2];
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p) {
        const __m256i *from = start ? start : (const __m256i *)(const void *)(acc + p * LANES);
        sum[p][0] = _mm256_loadu_si256(from);
        sum[p][1] = _mm256_loadu_si256(from + 1);
    }
    for (uint32_t o = 0; o < t->outer; ++o, panel += t->outer_step) {
        const uint8_t *a = panel;
        for (uint32_t i = 0; i < t->length * (NK_PACK / 2); ++i, a += 4, weights += 2 * LANES) {
            const __m256i low =
                _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)weights));
            const __m256i high = _mm256_cvtepi8_epi16(
                _mm_loadu_si128((const __m128i *)(const void *)(weights + LANES)));
#pragma GCC unroll 6
            for (int p = 0; p < P; ++p) {
                int32_t two;
                memcpy(&two, a + p * step, sizeof two);
                const __m256i x = _mm256_set1_epi32(two);
                sum[p][0] = _mm256_add_epi32(sum[p][0], _mm256_madd_epi16(x, low));
                sum[p][1] = _mm256_add_epi32(sum[p][1], _mm256_madd_epi16(x, high));
            }
        }
    }
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p) {
        _mm256_storeu_si256((__m256i *)(void *)(acc + p * LANES), sum[p][0]);
        _mm256_storeu_si256((__m256i *)(void *)(acc + p * LANES + 8), sum[p][1]);
    }
}

typedef void (*tile_function)(const part *t, const uint8_t *panel, size_t step,
                              const int8_t *weights, const __m256i *start, int32_t *acc);

// clang-format off
#define TILE(P)                                                                                                    \
    static void tile_##P(const part *t, const uint8_t *panel, size_t step, const int8_t *weights,                  \
                         const __m256i *start, int32_t *acc) {                                                     \
        tile(t, panel, step, weights, start, acc, P);                                                              \
    }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
    // clang-format on
    static const tile_function of[] = {NULL, tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};

/* `count` pixels of a panel row, in tiles of nearly equal size. */
static void tiles(const part *t, const uint8_t *panel, size_t step, uint32_t count,
                  const int8_t *weights, const __m256i *start, int32_t *acc) {
    for (uint32_t parts = nk_blocks(count, MAX_TILE); parts; --parts) {
        const uint32_t size = nk_blocks(count, parts);
        of[size](t, panel, step, weights, start, acc);
        panel += size * step, acc += (size_t)size * LANES, count -= size;
    }
}

/* Rearranged weights of 16 channels over blocks [skip, skip + t.length) of runs [first, first +
 * t.outer). */
static void expand_part(const nk_dense *d, const nk_block *b, const int8_t *weights, int two,
                        uint32_t first, uint32_t skip, const part *t, int8_t *to) {
    for (uint32_t o = 0; o < t->outer; ++o) {
        const int8_t *from = weights + ((size_t)(first + o) * b->length + skip) * NK_PACK * NK_PACK;
        for (uint32_t i = 0; i < t->length;
             ++i, from += NK_PACK * NK_PACK, to += 2 * NK_PACK * NK_PACK)
            expand(from, two ? from + d->group_bytes : NULL, to);
    }
}

#endif
#endif
