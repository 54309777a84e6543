/* Products of winograd_avx512.h, and A' [ ] A of them with the stage: some tiles' products are made
 * while others are finished. */
#ifndef NK_WINOGRAD_TILES_AVX512_H
#define NK_WINOGRAD_TILES_AVX512_H

#include "winograd_inputs_avx512.h"
#include "winograd_weights_avx512.h"

#if NK_HAS_X86

/* Two INT16 that are broadcast together. */
typedef int32_t __attribute__((may_alias)) nk_two;

/* sum += products of two INT16 at `two` with 16 pairs of weights. */
static inline __attribute__((always_inline)) void nk_dot2(__m512i *sum, __m512i weights,
                                                          const int16_t *two) {
    __asm__("vpdpwssd %2%{1to16%}, %1, %0"
            : "+v"(*sum)
            : "v"(weights), "m"(*(const nk_two *)(const void *)two));
}

/* A' of six sums, where the last is half of what it should be, plus `start`. */
static inline __attribute__((always_inline)) void nk_winograd_outputs1(const __m512i x[6],
                                                                       __m512i start,
                                                                       __m512i to[4]) {
    const __m512i from = _mm512_add_epi32(x[1], start), a = _mm512_add_epi32(from, x[2]),
                  b = _mm512_sub_epi32(from, x[2]), c = _mm512_add_epi32(x[3], x[4]),
                  d = _mm512_sub_epi32(x[3], x[4]);
    const __m512i last = _mm512_add_epi32(x[5], _mm512_slli_epi32(d, 2));
    to[0] = _mm512_add_epi32(_mm512_add_epi32(x[0], a), c);
    to[1] = _mm512_add_epi32(b, _mm512_add_epi32(d, d));
    to[2] = _mm512_add_epi32(a, _mm512_slli_epi32(c, 2));
    to[3] = _mm512_add_epi32(b, _mm512_add_epi32(last, last));
}

/* Where a tile is in the image, and how much of it is asked for. */
typedef struct {
    uint32_t image;
    int32_t y, x, rows, columns;
} nk_winograd_place;

/* Tiles whose sums wait for the rest of A' and the stage. */
typedef struct {
    __m512i sums[NK_WINOGRAD_TILES][6][4];
    nk_winograd_place places[NK_WINOGRAD_TILES];
    const nk_winograd *w;
    uint32_t tiles, channel;
    uint32_t done; /* tiles */
} nk_winograd_waiting;

/* 1 when there is a tile at hand, all of it asked for. */
static inline int nk_winograd_whole(const nk_winograd_waiting *q) {
    if (q->done == q->tiles) return 0;
    const nk_winograd_place *at = &q->places[q->done];
    return at->rows == NK_WINOGRAD_SIDE && at->columns == NK_WINOGRAD_SIDE;
}

/* A' of a row of the tile's sums: 576 times four pixels, or 64 times. */
static inline __attribute__((always_inline)) void nk_winograd_turn(const nk_winograd_waiting *q,
                                                                   uint32_t row, __m512i acc[4],
                                                                   const int far) {
    const __m512i(*sums)[4] = q->sums[q->done];
    const __m512i x[6] = {sums[0][row], sums[1][row], sums[2][row],
                          sums[3][row], sums[4][row], sums[5][row]};
    nk_winograd_outputs1(x, q->w->start, acc);
#pragma GCC unroll 4
    for (int j = 0; far && j < 4; ++j) acc[j] = nk_winograd_ninth(acc[j]);
}

/* Four pixels in the float form; `least` collects what nk_least_doubtful looks at. */
static inline __attribute__((always_inline)) __m512i nk_winograd_stage(const nk_winograd_waiting *q,
                                                                       const __m512i acc[4],
                                                                       __m512i *least,
                                                                       const int relu) {
    __m512i v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
        v[j] = nk_rescale16_float(&q->w->lanes, acc[j], relu);
        *least = _mm512_min_epu16(*least, v[j]);
    }
    return nk_upper_bytes(v, 0);
}

/* A row of the tile at hand. */
static inline uint8_t *nk_winograd_output(const nk_dense *d, const nk_winograd_waiting *q,
                                          uint32_t row) {
    const nk_winograd_place *at = &q->places[q->done];
    return nk_row(d->out, at->image, at->y + (int32_t)row) + (size_t)at->x * d->out->pixel +
           d->first_out + q->channel;
}

static inline __attribute__((always_inline)) void nk_winograd_put(uint8_t *to, size_t pixel,
                                                                  uint32_t count, __m512i bytes) {
    if (pixel == 16 && count == 4) _mm512_storeu_si512(to, bytes);
    else nk_store4(to, pixel, count, bytes);
}

/* Rows of the tile at hand in the integer form, where the float form may be wrong. */
static __attribute__((noinline)) void nk_winograd_again(const nk_dense *d, const nk_clamps *clamps,
                                                        const nk_winograd_waiting *q) {
    const nk_winograd_place at = q->places[q->done];
    for (uint32_t row = 0; row < (uint32_t)at.rows; ++row) {
        __m512i v[4], least = _mm512_set1_epi32(-1);
        if (q->w->far) nk_winograd_turn(q, row, v, 1);
        else nk_winograd_turn(q, row, v, 0);
        (void)nk_winograd_stage(q, v, &least, 0);
        if (!nk_least_doubtful(least)) continue;
        nk_winograd_turn(q, row, v, 1);
        for (int j = 0; j < 4; ++j) v[j] = nk_rescale16(&q->w->lanes, _mm512_srai_epi32(v[j], 6));
        const __m512i bytes = nk_bytes4(clamps, nk_turn_words(clamps, v[0], v[1]),
                                        nk_turn_words(clamps, v[2], v[3]), 0, 0);
        nk_winograd_put(nk_winograd_output(d, q, row), d->out->pixel, (uint32_t)at.columns, bytes);
    }
}

/* The tile at hand is done, unless the float form may be wrong. */
static inline __attribute__((always_inline)) void nk_winograd_end(const nk_dense *d,
                                                                  const nk_clamps *clamps,
                                                                  nk_winograd_waiting *q,
                                                                  __m512i least) {
    if (__builtin_expect(nk_least_doubtful(least), 0)) nk_winograd_again(d, clamps, q);
    q->done++;
}

/* The tile at hand, on its own. */
static __attribute__((noinline)) void nk_winograd_finish(const nk_dense *d, const nk_clamps *clamps,
                                                         nk_winograd_waiting *q) {
    const nk_winograd_place at = q->places[q->done];
    __m512i least = _mm512_set1_epi32(-1);
    for (uint32_t row = 0; row < (uint32_t)at.rows; ++row) {
        __m512i acc[4];
        if (q->w->far) nk_winograd_turn(q, row, acc, 1);
        else nk_winograd_turn(q, row, acc, 0);
        nk_winograd_put(nk_winograd_output(d, q, row), d->out->pixel, (uint32_t)at.columns,
                        nk_winograd_stage(q, acc, &least, 0));
    }
    nk_winograd_end(d, clamps, q, least);
}

/* Products of two inputs of T tiles. */
static inline __attribute__((always_inline)) void nk_winograd_step(
    const int16_t *inputs, const int16_t *weights, __m512i sum[6][NK_WINOGRAD_TILES], const int T) {
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
        const __m512i w = _mm512_loadu_si512(weights + 32 * i);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) nk_dot2(&sum[i][t], w, inputs + (t * 6 + i) * 16);
    }
}

/* A chunk of inputs, and a whole tile that waits. Multiply-adds and the rest run in different parts
 * of the processor, whose window of some 50 instructions overlaps them only when they take turns.
 */
static inline __attribute__((always_inline)) void nk_winograd_both(
    const nk_dense *d, const nk_clamps *clamps, const int16_t *inputs, const int16_t *weights,
    __m512i sum[6][NK_WINOGRAD_TILES], nk_winograd_waiting *q, const int T, const int relu,
    const int far) {
    __m512i least = _mm512_set1_epi32(-1);
#pragma GCC unroll 4
    for (uint32_t row = 0; row < NK_WINOGRAD_SIDE; ++row) {
        __m512i acc[4];
        nk_winograd_step(inputs + 4 * row, weights + 12 * 32 * row, sum, T);
        nk_winograd_turn(q, row, acc, far);
        nk_winograd_step(inputs + 4 * row + 2, weights + 12 * 32 * row + 6 * 32, sum, T);
        nk_winograd_put(nk_winograd_output(d, q, row), d->out->pixel, NK_WINOGRAD_SIDE,
                        nk_winograd_stage(q, acc, &least, relu));
    }
    nk_winograd_end(d, clamps, q, least);
}

/* Products of T tiles and 16 outputs: sums over all inputs, and A' of their columns. `relu` and
 * `far` are those of what waits. */
static inline __attribute__((always_inline)) void nk_winograd_sums(
    const nk_dense *d, const nk_clamps *clamps, const int16_t *inputs, nk_winograd_waiting *to,
    nk_winograd_waiting *q, const int T, const int relu, const int far) {
    const uint32_t chunks = d->inputs / NK_WINOGRAD_CHUNK;
    const int16_t *weights = to->w->weights;
    for (uint32_t j = 0; j < 6; ++j) {
        __m512i sum[6][NK_WINOGRAD_TILES];
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i)
#pragma GCC unroll 4
            for (int t = 0; t < T; ++t) sum[i][t] = _mm512_setzero_si512();
        for (uint32_t c = 0; c < chunks; ++c, inputs += NK_WINOGRAD_FOUR, weights += 8 * 6 * 32) {
            if (T == NK_WINOGRAD_TILES && nk_winograd_whole(q)) {
                nk_winograd_both(d, clamps, inputs, weights, sum, q, T, relu, far);
                continue;
            }
            for (uint32_t k = 0; k < NK_WINOGRAD_CHUNK / 2; ++k)
                nk_winograd_step(inputs + 2 * k, weights + k * 6 * 32, sum, T);
        }
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
            const __m512i column[6] = {sum[0][t], sum[1][t], sum[2][t],
                                       sum[3][t], sum[4][t], sum[5][t]};
            nk_winograd_outputs1(column, _mm512_setzero_si512(), to->sums[t][j]);
        }
    }
    while (q->done < q->tiles) nk_winograd_finish(d, clamps, q);
}

typedef void (*nk_winograd_sums_function)(const nk_dense *d, const nk_clamps *clamps,
                                          const int16_t *inputs, nk_winograd_waiting *to,
                                          nk_winograd_waiting *q);

// clang-format off
#define NK_WINOGRAD_SUMS(T, relu, far)                                                                            \
    static void nk_winograd_sums_##T##_##relu##_##far(const nk_dense *d, const nk_clamps *clamps,                 \
                                                      const int16_t *inputs, nk_winograd_waiting *to,             \
                                                      nk_winograd_waiting *q) {                                   \
        nk_winograd_sums(d, clamps, inputs, to, q, T, relu, far);                                                 \
    }
NK_WINOGRAD_SUMS(1, 0, 0) NK_WINOGRAD_SUMS(2, 0, 0) NK_WINOGRAD_SUMS(3, 0, 0)
NK_WINOGRAD_SUMS(4, 0, 0) NK_WINOGRAD_SUMS(4, 1, 0) NK_WINOGRAD_SUMS(4, 0, 1)
    // clang-format on

    /* By tiles at a time, and by what waits: only whole fours of tiles finish it on the way. */
    static inline nk_winograd_sums_function
    nk_winograd_sums_of(uint32_t tiles, const nk_winograd_waiting *q) {
    static const nk_winograd_sums_function few[] = {NULL, nk_winograd_sums_1_0_0,
                                                    nk_winograd_sums_2_0_0, nk_winograd_sums_3_0_0};
    return tiles < NK_WINOGRAD_TILES ? few[tiles]
           : q->done == q->tiles     ? nk_winograd_sums_4_0_0
           : q->w->far               ? nk_winograd_sums_4_0_1
           : q->w->lanes.relu        ? nk_winograd_sums_4_1_0
                                     : nk_winograd_sums_4_0_0;
}

#endif
#endif
