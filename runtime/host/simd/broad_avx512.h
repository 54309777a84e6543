/* Tiles of dense products over rearranged weights: a register holds 4 inputs of 16 outputs, so that
 * sums come out whole and in order. In the packing's own order a register holds 8 inputs of 8
 * outputs and sums come in halves, which costs as much as the stage where few inputs are summed.
 * Rearranging takes a moment per weight, so there must be pixels enough to pay for it. */
#ifndef NK_BROAD_AVX512_H
#define NK_BROAD_AVX512_H

#include "tiles_avx512.h"

#if NK_HAS_X86

#define NK_BROAD_BYTES \
    24576                 /* weights rearranged at a time: with a panel, in the stack's bound \
                           */
#define NK_BROAD_PIXELS 8 /* of a tile */
#define NK_BROAD_STEP 4   /* inputs of a register */

/* Registers of 4 inputs in a row of the window. */
static inline uint32_t nk_broad_steps(const nk_dense *d) {
    return nk_blocks((uint32_t)d->p->kernel_w * d->depth, NK_BROAD_STEP);
}

/* Output channels, a multiple of 16, whose weights are worth rearranging for `pixels` pixels and
 * fit. */
static inline uint32_t nk_broad_outputs(const nk_dense *d, uint64_t pixels) {
    const nk_conv2d_params *p = d->p;
    if (p->dilation_h != 1 || p->dilation_w != 1 || p->kernel_h > 64 || p->kernel_w > 64 ||
        d->depth > 1024)
        return 0;
    const uint32_t terms = (uint32_t)p->kernel_h * nk_broad_steps(d) * NK_BROAD_STEP;
    if (pixels * 3 < terms) return 0;
    const uint32_t fit = NK_BROAD_BYTES / terms / 32 * 32, all = d->outputs / 16 * 16;
    return fit < all ? fit : all;
}

static inline size_t nk_broad_bytes(const nk_dense *d, uint32_t outputs) {
    return (size_t)outputs * (uint32_t)d->p->kernel_h * nk_broad_steps(d) * NK_BROAD_STEP;
}

/* Groups `low` and `low` + group_bytes: their blocks as registers `apart` bytes apart. */
static inline void nk_broad_sixteen(const nk_dense *d, const int8_t *low, int8_t *to,
                                    size_t apart) {
    const __m512i front =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i back = _mm512_add_epi32(front, _mm512_set1_epi32(1));
    const uint32_t steps = nk_broad_steps(d),
                   blocks = nk_blocks((uint32_t)d->p->kernel_w * d->depth, NK_PACK);
    for (int32_t ky = 0; ky < d->p->kernel_h; ++ky, low += (size_t)blocks * NK_PACK * NK_PACK) {
        for (uint32_t i = 0; i < steps; ++i, to += apart) {
            const int8_t *from = low + (size_t)(i / 2) * NK_PACK * NK_PACK;
            _mm512_storeu_si512(
                to, _mm512_permutex2var_epi32(_mm512_loadu_si512(from), i % 2 ? back : front,
                                              _mm512_loadu_si512(from + d->group_bytes)));
        }
    }
}

/* Rearrange the first `outputs` channels: 32 at a time, the last 16 on their own. */
static inline void nk_broad_fill(const nk_dense *d, uint32_t outputs, int8_t *to) {
    for (uint32_t c = 0; c < outputs; c += 16) {
        const int alone = c % 32 == 0 && c + 16 == outputs;
        int8_t *chunk = to + nk_broad_bytes(d, c / 32 * 32);
        nk_broad_sixteen(d, d->weights + c / NK_PACK * d->group_bytes, chunk + c % 32 * 4,
                         alone ? 64 : 128);
    }
}

/* What the tiles of 16 or 32 channels share. */
typedef struct {
    const nk_block *block;
    const int8_t *weights;
    const int32_t *start;
    uint32_t steps;
    const nk_lanes16 *lanes; /* of one or two registers */
    const nk_clamps *clamps;
    size_t pixel; /* between output pixels */
} nk_broad;

/* Four registers in the integer form. */
static __attribute__((noinline)) __m512i nk_broad_exact(const nk_broad *t, const __m512i *acc,
                                                        const int G) {
    __m512i v[4];
    for (int j = 0; j < 4; ++j) v[j] = nk_rescale16(t->lanes + (G == 2 ? j % 2 : 0), acc[j]);
    return nk_bytes4(t->clamps, nk_turn_words(t->clamps, v[0], v[1]),
                     nk_turn_words(t->clamps, v[2], v[3]), 0, 0);
}

/* Four registers of sums to bytes in their order. */
static inline __attribute__((always_inline)) __m512i nk_broad_staged(const nk_broad *t,
                                                                     const __m512i acc[4],
                                                                     const int G, const int relu) {
    __m512i v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
        v[j] = nk_rescale16_float(t->lanes + (G == 2 ? j % 2 : 0), acc[j], relu);
    if (__builtin_expect(nk_doubtful(v), 0)) {
        const __m512i again[4] = {acc[0], acc[1], acc[2], acc[3]};
        return nk_broad_exact(t, again, G);
    }
    return nk_upper_bytes(v, 0);
}

/* Pixels first, first + 1 and so on of P: two of 32 channels or four of 16. */
static inline __attribute__((always_inline)) void nk_broad_put(uint8_t *to, size_t pixel,
                                                               __m512i bytes, const int first,
                                                               const int P, const int G) {
    to += first * pixel;
    if (G == 2) {
        _mm256_storeu_si256((__m256i *)(void *)to, _mm512_castsi512_si256(bytes));
        if (first + 1 < P)
            _mm256_storeu_si256((__m256i *)(void *)(to + pixel),
                                _mm512_extracti64x4_epi64(bytes, 1));
        return;
    }
    nk_store4(to, pixel, (uint32_t)(P - first), bytes);
}

/* `tiles` times P pixels times G registers of channels to bytes from `to` on. */
static inline __attribute__((always_inline)) void nk_broad_tile(const nk_broad *t,
                                                                const uint8_t *panel, uint8_t *to,
                                                                uint32_t tiles, const int P,
                                                                const int G, const int relu) {
    const size_t step = t->block->step, outer_step = t->block->outer_step;
    const uint32_t outer = t->block->outer, steps = t->steps;
    for (; tiles; --tiles, panel += P * step, to += P * t->pixel) {
        __m512i sum[NK_BROAD_PIXELS][2];
        const int8_t *w = t->weights;
        const uint8_t *run = panel;
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
            for (int g = 0; g < G; ++g) sum[p][g] = _mm512_loadu_si512(t->start + 16 * g);
        for (uint32_t o = 0; o < outer; ++o, run += outer_step) {
            const uint8_t *a = run;
            for (uint32_t i = 0; i < steps; ++i, a += NK_BROAD_STEP, w += G * 64) {
                __m512i v[2];
#pragma GCC unroll 2
                for (int g = 0; g < G; ++g) v[g] = _mm512_loadu_si512(w + 64 * g);
#pragma GCC unroll 8
                for (int p = 0; p < P; ++p) {
                    int32_t four;
                    memcpy(&four, a + p * step, sizeof four);
                    const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 2
                    for (int g = 0; g < G; ++g) nk_dot4(&sum[p][g], x, v[g]);
                }
            }
        }
#pragma GCC unroll 4
        for (int p = 0; p < P; p += 4 / G) {
            __m512i acc[4];
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) acc[j] = sum[p + j / G < P ? p + j / G : P - 1][j % G];
            nk_broad_put(to, t->pixel, nk_broad_staged(t, acc, G, relu), p, P, G);
        }
    }
}

typedef void (*nk_broad_function)(const nk_broad *t, const uint8_t *panel, uint8_t *to,
                                  uint32_t tiles);

// clang-format off
#define NK_BROAD_TILE(P, G, relu)                                                                                \
    static void nk_broad_##P##_##G##_##relu(const nk_broad *t, const uint8_t *panel, uint8_t *to,                \
                                            uint32_t tiles) {                                                    \
        nk_broad_tile(t, panel, to, tiles, P, G, relu);                                                          \
    }
#define NK_BROAD_TILES(G, relu)                                                                                  \
    NK_BROAD_TILE(1, G, relu) NK_BROAD_TILE(2, G, relu) NK_BROAD_TILE(3, G, relu) NK_BROAD_TILE(4, G, relu)      \
    NK_BROAD_TILE(5, G, relu) NK_BROAD_TILE(6, G, relu) NK_BROAD_TILE(7, G, relu) NK_BROAD_TILE(8, G, relu)
NK_BROAD_TILES(1, 0) NK_BROAD_TILES(1, 1) NK_BROAD_TILES(2, 0) NK_BROAD_TILES(2, 1)
#define NK_BROAD_ROW(G, relu)                                                                                    \
    {NULL, nk_broad_1_##G##_##relu, nk_broad_2_##G##_##relu, nk_broad_3_##G##_##relu, nk_broad_4_##G##_##relu,   \
     nk_broad_5_##G##_##relu, nk_broad_6_##G##_##relu, nk_broad_7_##G##_##relu, nk_broad_8_##G##_##relu}
/* By registers of channels, RELU, and pixels. */
static const nk_broad_function nk_broad_tiles[2][2][NK_BROAD_PIXELS + 1] = {
    {NK_BROAD_ROW(1, 0), NK_BROAD_ROW(1, 1)}, {NK_BROAD_ROW(2, 0), NK_BROAD_ROW(2, 1)}};
// clang-format on

/* The first `outputs` channels of a block. */
static inline void nk_broad_product(const nk_dense *d, const nk_block *b, uint32_t outputs,
                                    const int8_t *weights, const int32_t *bias,
                                    const nk_lanes16 *lanes, const nk_clamps *clamps) {
    const uint32_t parts = nk_blocks(b->columns, NK_BROAD_PIXELS), small = b->columns / parts,
                   larger = b->columns % parts;
    const size_t pixel = d->out->pixel, done = (size_t)larger * (small + 1);
    for (uint32_t c = 0; c < outputs; c += 32) {
        const int two = outputs - c >= 32;
        const nk_broad t = {b,
                            weights + nk_broad_bytes(d, c),
                            bias + c,
                            nk_broad_steps(d),
                            lanes + c / 16,
                            clamps,
                            pixel};
        const nk_broad_function *of = nk_broad_tiles[two][lanes->relu != 0];
        for (uint32_t r = 0; r < b->rows; ++r) {
            const uint8_t *panel = b->panel + r * b->row_step;
            uint8_t *to = nk_row(d->out, b->image, b->y + (int32_t)r) + (size_t)b->x * pixel +
                          d->first_out + c;
            if (larger) of[small + 1](&t, panel, to, larger);
            of[small](&t, panel + done * b->step, to + done * pixel, parts - larger);
        }
    }
}

#endif
#endif
