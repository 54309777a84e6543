/* Dense products of 16-bit activations on packed weights as they lie: a block of [8 outputs][8
 * inputs] bytes becomes two registers of 16-bit numbers, 8 activations are broadcast to 4 outputs
 * each, and VPDPWSSD leaves four partial sums of 32 bits per output. */
#include "loops.h"

#if NK_HAS_X86

#include "wide_avx512.h"

#define NK_SLAB NK_WIDE_LANES
#define NK_TILE 6 /* 24 accumulators leave registers for weights and activations */

typedef nk_wide16 nk_constants;
#define nk_constants_of nk_wide16_of

static inline void nk_finish32(const nk_constants *k, const int32_t *acc, uint8_t *to) {
    nk_wide_finish32(k, _mm512_load_si512(acc), to);
}

static inline void nk_finish64(const nk_constants *k, const int64_t *acc, uint8_t *to) {
    nk_wide_finish64(k, _mm512_load_si512(acc), _mm512_load_si512(acc + 8), to);
}

#include "parts16.h"

/* Sums of two partial ones: dword 4 * (o % 4) + o / 4 belongs to output o. */
NK_INLINE void halves(const __m512i sum[4], __m512i *first, __m512i *second) {
    const __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(sum[0], sum[1]),
                                       _mm512_unpackhi_epi32(sum[0], sum[1]));
    const __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(sum[2], sum[3]),
                                       _mm512_unpackhi_epi32(sum[2], sum[3]));
    *first = _mm512_unpacklo_epi64(a, b);
    *second = _mm512_unpackhi_epi64(a, b);
}

NK_INLINE __m512i in_order(__m512i sums) {
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), sums);
}

NK_INLINE __m512i widened(__m512i a, __m512i b, const int half) {
    const __m256i x = half ? _mm512_extracti64x4_epi64(a, 1) : _mm512_castsi512_si256(a);
    const __m256i y = half ? _mm512_extracti64x4_epi64(b, 1) : _mm512_castsi512_si256(b);
    return _mm512_add_epi64(_mm512_cvtepi32_epi64(x), _mm512_cvtepi32_epi64(y));
}

/* P pixels times G groups of 8 outputs. */
NK_INLINE void tile(const nk_part16 *t, const uint8_t *panel, void *to, int wide, const int P,
                    const int G) {
    __m512i sum[NK_TILE][4];
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g) sum[p][g] = _mm512_setzero_si512();
    const int8_t *weights = t->weights;
    for (uint32_t o = 0; o < t->outer; ++o, panel += t->outer_step, weights += t->weights_step) {
        const uint8_t *a = panel;
        const int8_t *w = weights;
        for (uint32_t i = 0; i < t->length; ++i, a += NK_PACK * NK_ITEM, w += NK_PACK * NK_PACK) {
            __m512i v[4];
#pragma GCC unroll 4
            for (int g = 0; g < 2 * G; ++g)
                v[g] = _mm512_cvtepi8_epi16(_mm256_loadu_si256(
                    (const __m256i *)(const void *)(w + g / 2 * t->group + g % 2 * 32)));
#pragma GCC unroll 6
            for (int p = 0; p < P; ++p) {
                const __m512i x = _mm512_broadcast_i32x4(
                    _mm_loadu_si128((const __m128i *)(const void *)(a + p * t->step)));
#pragma GCC unroll 4
                for (int g = 0; g < 2 * G; ++g) nk_dot2(&sum[p][g], x, v[g]);
            }
        }
    }
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p) {
        __m512i first, second;
        halves(sum[p], &first, &second);
        if (!wide) {
            _mm512_store_si512((int32_t *)to + p * NK_SLAB,
                               in_order(_mm512_add_epi32(first, second)));
            continue;
        }
        int64_t *sums = (int64_t *)to + p * NK_SLAB;
        first = in_order(first), second = in_order(second);
        _mm512_store_si512(sums,
                           _mm512_add_epi64(_mm512_load_si512(sums), widened(first, second, 0)));
        _mm512_store_si512(
            sums + 8, _mm512_add_epi64(_mm512_load_si512(sums + 8), widened(first, second, 1)));
    }
}

typedef void (*tile_function)(const nk_part16 *t, const uint8_t *panel, void *to, int wide);

// clang-format off
#define NK_TILE16(P, G)                                                                            \
    static void tile_##P##_##G(const nk_part16 *t, const uint8_t *panel, void *to, int wide) {     \
        tile(t, panel, to, wide, P, G);                                                            \
    }
NK_TILE16(1, 1) NK_TILE16(2, 1) NK_TILE16(3, 1) NK_TILE16(4, 1) NK_TILE16(5, 1) NK_TILE16(6, 1)
NK_TILE16(1, 2) NK_TILE16(2, 2) NK_TILE16(3, 2) NK_TILE16(4, 2) NK_TILE16(5, 2) NK_TILE16(6, 2)
    // clang-format on
    static const tile_function of[2][NK_TILE] = {
        {tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1},
        {tile_1_2, tile_2_2, tile_3_2, tile_4_2, tile_5_2, tile_6_2}};

static void nk_tile16(const nk_part16 *t, const uint8_t *panel, uint32_t count, uint32_t groups,
                      void *to, int wide) {
    of[groups - 1][count - 1](t, panel, to, wide);
}

int nk_conv2d16_avx512(const nk_call *call, const nk_wide_stage *stage) {
    return nk_conv2d16_by(call, stage, nk_product16);
}

int nk_fully_connected16_avx512(const nk_call *call, const nk_wide_stage *stage) {
    return nk_fully_connected16_by(call, stage, nk_product16);
}

#endif
