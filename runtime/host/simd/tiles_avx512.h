/* Tiles of dense products: a few pixels times 8, 16 or 32 channels, all sums in registers.
 *
 * Two ways on. A plain tile leaves its accumulators in memory for the stage. A staged one leaves
 * them to the next tile, which takes them through the stage between its own products: multiply-adds
 * and the stage's instructions run in different parts of the processor, whose window is too short
 * to overlap them when one follows the other. */
#ifndef NK_TILES_AVX512_H
#define NK_TILES_AVX512_H

#include "dense.h"

#if NK_HAS_X86

#include "stage_avx512.h"

#define NK_ROW 32 /* lanes of accumulators per pixel: four groups of 8 channels */
/* Pixels of a staged tile: 16 accumulators leave the stage as many registers. */
#define NK_STAGED 8

/* sum += dot products of 4 unsigned and 4 signed bytes. Written out, because gcc 12 copies the
 * accumulators of the intrinsic to memory and back in every turn of a loop. */
static inline __attribute__((always_inline)) void nk_dot4(__m512i *sum, __m512i bytes,
                                                          __m512i weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(bytes), "v"(weights));
}

/* What the tiles of a slab share. */
typedef struct {
    const nk_block *block;
    size_t group; /* bytes of a group's weights */
    const int8_t *weights;
    const __m512i *start;
} nk_tiling;

/* The sums of two groups, paired. */
static inline __attribute__((always_inline)) __m512i nk_pair(__m512i left, __m512i right) {
    const __m512i even = _mm512_mask_shuffle_epi32(left, 0xAAAA, right, _MM_PERM_CDAB);
    const __m512i odd = _mm512_mask_shuffle_epi32(right, 0x5555, left, _MM_PERM_CDAB);
    return _mm512_add_epi32(even, odd);
}

/* One step of P pixels times G groups: 8 inputs. */
static inline __attribute__((always_inline)) void nk_step(const uint8_t *a, size_t step,
                                                          const int8_t *w, size_t group,
                                                          __m512i sum[12][4], const int P,
                                                          const int G) {
    __m512i v[4];
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) v[g] = _mm512_loadu_si512(w + g * group);
#pragma GCC unroll 12
    for (int p = 0; p < P; ++p) {
        int64_t eight;
        memcpy(&eight, a + p * step, sizeof eight);
        const __m512i x = _mm512_set1_epi64(eight);
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) nk_dot4(&sum[p][g], x, v[g]);
    }
}

/* `tiles` times P pixels times G groups, to accumulators. */
static inline __attribute__((always_inline)) void nk_tile(const nk_tiling *t, const uint8_t *panel,
                                                          int32_t *acc, uint32_t tiles, const int P,
                                                          const int G) {
    const size_t step = t->block->step, group = t->group, outer_step = t->block->outer_step;
    const uint32_t outer = t->block->outer, length = t->block->length;
    for (; tiles; --tiles, panel += P * step, acc += P * NK_ROW) {
        __m512i sum[12][4];
        const int8_t *w = t->weights;
        const uint8_t *run = panel;
#pragma GCC unroll 12
        for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
            for (int g = 0; g < G; ++g) sum[p][g] = t->start[g];
        for (uint32_t o = 0; o < outer; ++o, run += outer_step) {
            const uint8_t *a = run;
            for (uint32_t i = 0; i < length; ++i, a += NK_PACK, w += NK_PACK * NK_PACK)
                nk_step(a, step, w, group, sum, P, G);
        }
#pragma GCC unroll 12
        for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
            for (int g = 0; g < G; g += 2)
                _mm512_storeu_si512(
                    acc + p * NK_ROW + g * 8,
                    nk_pair(sum[p][g], g + 1 < G ? sum[p][g + 1] : _mm512_setzero_si512()));
    }
}

/* A tile on its way through the stage: pixels in fours, the last one repeated where there are
 * fewer. */
typedef struct {
    int32_t acc[NK_STAGED * 16] __attribute__((aligned(64)));
    const nk_clamps *clamps;
    const nk_lanes16 *lanes;
    uint8_t *to;
    size_t pixel;
    uint32_t pixels, fours, done; /* of this tile */
    uint32_t doubt;               /* bit i: the float form may be wrong in four i */
} nk_waiting;

static inline uint32_t nk_least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static inline __attribute__((always_inline)) void nk_put4(const nk_waiting *q, uint32_t four,
                                                          __m512i bytes) {
    const uint32_t last = q->pixels - 1 - 4 * four;
    uint8_t *to = q->to + (size_t)4 * four * q->pixel;
    if (q->pixel == 16 && last >= 3) {
        _mm512_storeu_si512(to, bytes);
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_castsi512_si128(bytes));
    _mm_storeu_si128((__m128i *)(void *)(to + nk_least(1, last) * q->pixel),
                     _mm512_extracti32x4_epi32(bytes, 1));
    _mm_storeu_si128((__m128i *)(void *)(to + nk_least(2, last) * q->pixel),
                     _mm512_extracti32x4_epi32(bytes, 2));
    _mm_storeu_si128((__m128i *)(void *)(to + nk_least(3, last) * q->pixel),
                     _mm512_extracti32x4_epi32(bytes, 3));
}

/* The next four pixels in the float form. */
static inline __attribute__((always_inline)) void nk_stage_next(nk_waiting *q, const int relu) {
    const uint32_t four = q->done++;
    const int32_t *acc = q->acc + four * 64;
    __m512i v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
        v[j] = nk_rescale16_float(q->lanes, _mm512_load_si512(acc + 16 * j), relu);
    q->doubt |= (uint32_t)nk_doubtful(v) << four;
    nk_put4(q, four, nk_upper_bytes(v, 1));
}

static __attribute__((noinline)) void nk_stage_again(nk_waiting *q) {
    for (uint32_t four = 0; four < q->fours; ++four)
        if (q->doubt >> four & 1)
            nk_put4(q, four, nk_stage16_exact(q->clamps, q->lanes, q->acc + four * 64, 16, 4));
}

/* What waits is done when this returns. */
static inline __attribute__((always_inline)) void nk_stage_rest(nk_waiting *q, const int relu) {
    while (q->done < q->fours) nk_stage_next(q, relu);
    if (__builtin_expect(q->doubt != 0, 0)) nk_stage_again(q);
}

/* `tiles` times P pixels times two groups to bytes from `to` on, `q->pixel` apart; the last tile
 * waits. Only for the float form and a clamp to INT8. */
static inline __attribute__((always_inline)) void nk_staged_tile(
    const nk_tiling *t, const uint8_t *panel, nk_waiting *q, const nk_lanes16 *lanes, uint8_t *to,
    uint32_t tiles, const int P, const int relu) {
    const size_t step = t->block->step, group = t->group, outer_step = t->block->outer_step;
    const uint32_t outer = t->block->outer, length = t->block->length;
    for (; tiles; --tiles, panel += P * step, to += P * q->pixel) {
        __m512i sum[12][4];
        const int8_t *w = t->weights;
        const uint8_t *run = panel;
#pragma GCC unroll 12
        for (int p = 0; p < P; ++p) sum[p][0] = t->start[0], sum[p][1] = t->start[1];
        for (uint32_t o = 0; o < outer; ++o, run += outer_step) {
            const uint8_t *a = run;
            for (uint32_t i = 0; i < length; ++i, a += NK_PACK, w += NK_PACK * NK_PACK) {
                nk_step(a, step, w, group, sum, P, 2);
                if (q->done < q->fours) nk_stage_next(q, relu);
            }
        }
        nk_stage_rest(q, relu);
#pragma GCC unroll 8
        for (int p = 0; p < (P + 3) / 4 * 4; ++p) {
            const int from = p < P ? p : P - 1;
            _mm512_store_si512(q->acc + 16 * p, nk_pair(sum[from][0], sum[from][1]));
        }
        q->lanes = lanes, q->to = to, q->pixels = P, q->fours = (P + 3) / 4, q->done = 0,
        q->doubt = 0;
    }
}

typedef void (*nk_tile_function)(const nk_tiling *t, const uint8_t *panel, int32_t *acc,
                                 uint32_t tiles);
typedef void (*nk_staged_function)(const nk_tiling *t, const uint8_t *panel, nk_waiting *q,
                                   const nk_lanes16 *lanes, uint8_t *to, uint32_t tiles);

// clang-format off
#define NK_TILE(P, G)                                                                                        \
    static void nk_tile_##P##_##G(const nk_tiling *t, const uint8_t *panel, int32_t *acc, uint32_t tiles) {  \
        nk_tile(t, panel, acc, tiles, P, G);                                                                 \
    }
NK_TILE(1, 4) NK_TILE(2, 4) NK_TILE(3, 4) NK_TILE(4, 4) NK_TILE(5, 4) NK_TILE(6, 4)
NK_TILE(1, 2) NK_TILE(2, 2) NK_TILE(3, 2) NK_TILE(4, 2) NK_TILE(5, 2) NK_TILE(6, 2)
NK_TILE(7, 2) NK_TILE(8, 2) NK_TILE(9, 2) NK_TILE(10, 2) NK_TILE(11, 2) NK_TILE(12, 2)
NK_TILE(1, 1) NK_TILE(2, 1) NK_TILE(3, 1) NK_TILE(4, 1) NK_TILE(5, 1) NK_TILE(6, 1)
NK_TILE(7, 1) NK_TILE(8, 1) NK_TILE(9, 1) NK_TILE(10, 1) NK_TILE(11, 1) NK_TILE(12, 1)

#define NK_STAGED_TILE(P, relu)                                                                                           \
    static void nk_staged_##P##_##relu(const nk_tiling *t, const uint8_t *panel, nk_waiting *q, const nk_lanes16 *lanes,  \
                                       uint8_t *to, uint32_t tiles) {                                                     \
        nk_staged_tile(t, panel, q, lanes, to, tiles, P, relu);                                                           \
    }
NK_STAGED_TILE(1, 0) NK_STAGED_TILE(2, 0) NK_STAGED_TILE(3, 0) NK_STAGED_TILE(4, 0)
NK_STAGED_TILE(5, 0) NK_STAGED_TILE(6, 0) NK_STAGED_TILE(7, 0) NK_STAGED_TILE(8, 0)
NK_STAGED_TILE(1, 1) NK_STAGED_TILE(2, 1) NK_STAGED_TILE(3, 1) NK_STAGED_TILE(4, 1)
NK_STAGED_TILE(5, 1) NK_STAGED_TILE(6, 1) NK_STAGED_TILE(7, 1) NK_STAGED_TILE(8, 1)
    // clang-format on

    /* By pixels, up to 24 accumulators: more leave no registers for weights and broadcasts. */
    static const nk_tile_function nk_tiles4[] = {NULL,        nk_tile_1_4, nk_tile_2_4, nk_tile_3_4,
                                                 nk_tile_4_4, nk_tile_5_4, nk_tile_6_4};
static const nk_tile_function nk_tiles2[] = {
    NULL,        nk_tile_1_2, nk_tile_2_2, nk_tile_3_2,  nk_tile_4_2,  nk_tile_5_2, nk_tile_6_2,
    nk_tile_7_2, nk_tile_8_2, nk_tile_9_2, nk_tile_10_2, nk_tile_11_2, nk_tile_12_2};
static const nk_tile_function nk_tiles1[] = {
    NULL,        nk_tile_1_1, nk_tile_2_1, nk_tile_3_1,  nk_tile_4_1,  nk_tile_5_1, nk_tile_6_1,
    nk_tile_7_1, nk_tile_8_1, nk_tile_9_1, nk_tile_10_1, nk_tile_11_1, nk_tile_12_1};
static const nk_staged_function nk_staged[2][NK_STAGED + 1] = {
    {NULL, nk_staged_1_0, nk_staged_2_0, nk_staged_3_0, nk_staged_4_0, nk_staged_5_0, nk_staged_6_0,
     nk_staged_7_0, nk_staged_8_0},
    {NULL, nk_staged_1_1, nk_staged_2_1, nk_staged_3_1, nk_staged_4_1, nk_staged_5_1, nk_staged_6_1,
     nk_staged_7_1, nk_staged_8_1}};

/* `count` pixels of a panel row times `groups` (1, 2 or 4), in tiles of nearly equal size: some of
 * one size, then the rest one smaller. */
static inline void nk_tiles(const nk_tiling *t, const uint8_t *panel, uint32_t count,
                            uint32_t groups, int32_t *acc) {
    const nk_tile_function *of = groups == 4 ? nk_tiles4 : groups == 2 ? nk_tiles2 : nk_tiles1;
    const uint32_t parts = nk_blocks(count, groups == 4 ? 6 : 12), small = count / parts,
                   larger = count % parts;
    const size_t done = (size_t)larger * (small + 1);
    if (larger) of[small + 1](t, panel, acc, larger);
    of[small](t, panel + done * t->block->step, acc + done * NK_ROW, parts - larger);
}

/* The same times two groups to bytes. */
static inline void nk_staged_tiles(const nk_tiling *t, const uint8_t *panel, uint32_t count,
                                   nk_waiting *q, const nk_lanes16 *lanes, uint8_t *to) {
    const nk_staged_function *of = nk_staged[lanes->relu != 0];
    const uint32_t parts = nk_blocks(count, NK_STAGED), small = count / parts,
                   larger = count % parts;
    const size_t done = (size_t)larger * (small + 1);
    if (larger) of[small + 1](t, panel, q, lanes, to, larger);
    of[small](t, panel + done * t->block->step, q, lanes, to + done * q->pixel, parts - larger);
}

#endif
#endif
