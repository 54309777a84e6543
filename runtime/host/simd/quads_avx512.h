/* depthwise_conv2d of 3 x 3, 64 bytes at a time: 64 channels of a pixel, or whole pixels that lie
 * side by side. Bytes of three rows are interleaved twice, which puts the rows of a column into the
 * four bytes of a lane, as VPDPBUSD wants them, in 11 instructions for 64 columns:
 *
 *     row 0  a b c d ..        a A b B ..
 *     row 1  A B C D ..   ->              ->  a A 1 . b B 2 . c C 3 . d D 4 .  (register 0)
 *     row 2  1 2 3 4 ..        1 . 2 . ..
 *
 * Register j holds bytes 4j to 4j + 3 of each 128 bits: the order in which saturating packs put
 * four registers of words back together. Sums never leave the registers. */
#ifndef NK_QUADS_AVX512_H
#define NK_QUADS_AVX512_H

#include "stage_avx512.h"

#if NK_HAS_X86

#define NK_QUAD_BYTES 64

/* What depends on the weights and table of 64 bytes alone. */
typedef struct {
    nk_lanes16 lanes[4];
    __m512i start[4];
    __m512i weights[3][4]; /* by columns of the window */
    int usable;            /* all lanes take the float form */
} nk_quads;

/* Rows under a window and what to do with them; rows outside the image stand still on absent
 * bytes. */
typedef struct {
    const uint8_t *at[3];
    size_t step[3]; /* between pixels */
    int32_t width;  /* pixels of a row */
    __m512i flip;   /* makes bytes unsigned */
    __m512i absent; /* a pixel outside the image, before the flip */
    uint8_t *to;
    size_t pixel; /* between output pixels */
    int32_t stride, pad;
    uint32_t columns; /* of output */
} nk_quad_rows;

/* Four registers of 16 values each into the order above. */
static inline void nk_quad_order(const __m512i natural[4], __m512i to[4]) {
    const __m512i a = _mm512_shuffle_i32x4(natural[0], natural[1], 0x44),
                  b = _mm512_shuffle_i32x4(natural[0], natural[1], 0xEE),
                  c = _mm512_shuffle_i32x4(natural[2], natural[3], 0x44),
                  d = _mm512_shuffle_i32x4(natural[2], natural[3], 0xEE);
    to[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    to[1] = _mm512_shuffle_i32x4(a, c, 0xDD);
    to[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    to[3] = _mm512_shuffle_i32x4(b, d, 0xDD);
}

/* Bytes of three rows as lanes. */
static inline __attribute__((always_inline)) void nk_quad_lanes(__m512i first, __m512i second,
                                                                __m512i third, __m512i to[4]) {
    const __m512i low = _mm512_unpacklo_epi8(first, second),
                  high = _mm512_unpackhi_epi8(first, second),
                  low_third = _mm512_unpacklo_epi8(third, third),
                  high_third = _mm512_unpackhi_epi8(third, third);
    to[0] = _mm512_unpacklo_epi16(low, low_third);
    to[1] = _mm512_unpackhi_epi16(low, low_third);
    to[2] = _mm512_unpacklo_epi16(high, high_third);
    to[3] = _mm512_unpackhi_epi16(high, high_third);
}

/* A column of a table of INT32, for `period` (8, 16, 32 or 64) channels over and over. */
static inline void nk_quad_table(const uint8_t *from, uint32_t period, uint8_t *to) {
    __m512i natural[4], ordered[4];
    for (uint32_t k = 0; k < 4; ++k) {
        const uint8_t *at = from + (size_t)4 * (16 * k % period);
        natural[k] =
            period == 8
                ? _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(const void *)at))
                : _mm512_loadu_si512(at);
    }
    nk_quad_order(natural, ordered);
    for (uint32_t j = 0; j < 4; ++j) _mm512_storeu_si512(to + (size_t)64 * j, ordered[j]);
}

/* Weights of one tap for 64 bytes; `groups` of 8 channels over and over. */
static inline __m512i nk_quad_tap(const int8_t *weights, size_t group_bytes, uint32_t groups,
                                  size_t tap) {
    int8_t bytes[NK_QUAD_BYTES];
    for (uint32_t g = 0; g < 8; ++g)
        memcpy(bytes + (size_t)8 * g, weights + g % groups * group_bytes + 8 * tap, 8);
    return _mm512_loadu_si512(bytes);
}

/* Constants of `period` channels from `channel` on, a multiple of 8; weights are packed. */
static inline void nk_quads_fill(const nk_stage *stage, const nk_clamps *c, const int8_t *packed,
                                 uint32_t channel, uint32_t period, __m512i flip, nk_quads *k) {
    const size_t group_bytes = 9 * 8;
    const int8_t *weights = packed + channel / 8 * group_bytes;
    uint8_t table[3 * 4 * NK_QUAD_BYTES];
    nk_stage ordered = *stage;
    ordered.table = table, ordered.column = sizeof table / 3;
    for (uint32_t i = 0; i < 3; ++i)
        nk_quad_table(stage->table + (size_t)4 * channel + i * stage->column, period,
                      table + i * ordered.column);
    k->usable = 1;
    for (uint32_t x = 0; x < 3; ++x) {
        const __m512i third = nk_quad_tap(weights, group_bytes, period / 8, 6 + x);
        nk_quad_lanes(nk_quad_tap(weights, group_bytes, period / 8, x),
                      nk_quad_tap(weights, group_bytes, period / 8, 3 + x), third, k->weights[x]);
        for (uint32_t j = 0; j < 4; ++j) /* the fourth byte is no tap */
            k->weights[x][j] = _mm512_and_si512(k->weights[x][j], _mm512_set1_epi32(0xFFFFFF));
    }
    for (uint32_t j = 0; j < 4; ++j) {
        __m512i sum = _mm512_setzero_si512();
        for (uint32_t x = 0; x < 3; ++x) sum = _mm512_dpbusd_epi32(sum, flip, k->weights[x][j]);
        k->start[j] = _mm512_sub_epi32(_mm512_loadu_si512(table + (size_t)64 * j), sum);
        k->lanes[j] = nk_lanes16_of(&ordered, c, (size_t)16 * j, 16, 0, 9 * 255 * 128);
        k->usable &= k->lanes[j].form == NK_FLOAT;
    }
}

/* Words, with the zero point in them, to bytes. */
static inline __attribute__((always_inline)) __m512i nk_quad_clamped(const nk_clamps *c,
                                                                     __m512i front, __m512i back,
                                                                     const int open) {
    const __m512i bytes = _mm512_packs_epi16(front, back);
    if (open) return bytes;
    return _mm512_xor_si512(_mm512_min_epi8(_mm512_max_epi8(bytes, c->low), c->high), c->flip);
}

/* The integer form of what follows. */
static __attribute__((noinline)) __m512i nk_quad_exact(const nk_quads *k, const nk_clamps *c,
                                                       const __m512i *acc) {
    __m512i v[4];
    for (uint32_t j = 0; j < 4; ++j) v[j] = nk_rescale16(&k->lanes[j], acc[j]);
    return nk_quad_clamped(c, _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), c->zero),
                           _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), c->zero), 0);
}

/* Sums to bytes. */
static inline __attribute__((always_inline)) __m512i nk_quad_staged(
    const nk_quads *k, const nk_clamps *c, const __m512i acc[4], const int relu, const int open) {
    /* Upper words of two registers, 64 bits of each in turn. */
    const __m512i words =
        _mm512_set_epi16(63, 61, 59, 57, 31, 29, 27, 25, 55, 53, 51, 49, 23, 21, 19, 17, 47, 45, 43,
                         41, 15, 13, 11, 9, 39, 37, 35, 33, 7, 5, 3, 1);
    __m512i v[4];
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j) v[j] = nk_rescale16_float(&k->lanes[j], acc[j], relu);
    if (__builtin_expect(nk_doubtful(v), 0)) {
        const __m512i again[4] = {acc[0], acc[1], acc[2], acc[3]};
        return nk_quad_exact(k, c, again);
    }
    return nk_quad_clamped(c, _mm512_permutex2var_epi16(v[0], words, v[1]),
                           _mm512_permutex2var_epi16(v[2], words, v[3]), open);
}

/* 64 bytes of output from the columns left, in the middle and right. */
static inline __attribute__((always_inline)) void nk_quad_put(const nk_quads *k, const nk_clamps *c,
                                                              const __m512i left[4],
                                                              const __m512i middle[4],
                                                              const __m512i right[4], uint8_t *to,
                                                              const int relu, const int open) {
    __m512i acc[4];
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j) {
        acc[j] = _mm512_dpbusd_epi32(k->start[j], left[j], k->weights[0][j]);
        acc[j] = _mm512_dpbusd_epi32(acc[j], middle[j], k->weights[1][j]);
        acc[j] = _mm512_dpbusd_epi32(acc[j], right[j], k->weights[2][j]);
    }
    _mm512_storeu_si512(to, nk_quad_staged(k, c, acc, relu, open));
}

/* 64 channels of pixel x. */
static inline __attribute__((always_inline)) void nk_quad_column(const nk_quad_rows *r, int32_t x,
                                                                 __m512i to[4]) {
    if ((uint32_t)x >= (uint32_t)r->width) { /* or negative */
        const __m512i absent = _mm512_xor_si512(r->absent, r->flip);
        to[0] = to[1] = to[2] = to[3] = absent;
        return;
    }
    __m512i row[3];
#pragma GCC unroll 3
    for (uint32_t i = 0; i < 3; ++i)
        row[i] = _mm512_xor_si512(_mm512_loadu_si512(r->at[i] + (size_t)x * r->step[i]), r->flip);
    nk_quad_lanes(row[0], row[1], row[2], to);
}

/* A row of 64 channels. */
static inline __attribute__((always_inline)) void nk_quad_channels(const nk_quads *k,
                                                                   const nk_clamps *clamps,
                                                                   const nk_quad_rows *rows,
                                                                   const int stride, const int relu,
                                                                   const int open) {
    const nk_quad_rows r = *rows; /* stores to bytes cannot reach these */
    const nk_clamps c = *clamps;
    __m512i left[4], middle[4], right[4];
    int32_t x = -r.pad;
    uint8_t *to = r.to;
    nk_quad_column(&r, x, left);
    nk_quad_column(&r, x + 1, middle);
    for (uint32_t i = 0; i < r.columns; ++i, x += stride, to += r.pixel) {
        nk_quad_column(&r, x + 2, right);
        nk_quad_put(k, &c, left, middle, right, to, relu, open);
#pragma GCC unroll 4
        for (uint32_t j = 0; j < 4; ++j) {
            left[j] = stride == 1 ? middle[j] : right[j];
            middle[j] = right[j];
        }
        if (stride == 2) nk_quad_column(&r, x + 3, middle);
    }
}

/* Whole pixels from x on that lie side by side, `pixels` in 64 bytes. */
static inline __attribute__((always_inline)) void nk_quad_pixels(const nk_quad_rows *r, int32_t x,
                                                                 const int32_t pixels,
                                                                 __m512i to[4]) {
    const int32_t bytes = NK_QUAD_BYTES / pixels;
    __m512i row[3];
    if (x >= 0 && x + pixels <= r->width) {
#pragma GCC unroll 3
        for (uint32_t i = 0; i < 3; ++i)
            row[i] = _mm512_loadu_si512(r->at[i] + (size_t)x * r->step[i]);
    } else {
        const int32_t before = nk_min(nk_max(-x, 0), pixels),
                      inside = nk_min(nk_max(r->width - x, before), pixels);
        const __mmask64 all = ~(__mmask64)0;
        const __mmask64 mask =
            inside == before ? 0 : all >> (64 - (inside - before) * bytes) << before * bytes;
        /* Where nothing is inside, no row is looked at: x may be far away. */
        for (uint32_t i = 0; i < 3; ++i)
            row[i] = mask ? _mm512_mask_loadu_epi8(r->absent, mask,
                                                   r->at[i] + (ptrdiff_t)x * (ptrdiff_t)r->step[i])
                          : r->absent;
    }
#pragma GCC unroll 3
    for (uint32_t i = 0; i < 3; ++i) row[i] = _mm512_xor_si512(row[i], r->flip);
    nk_quad_lanes(row[0], row[1], row[2], to);
}

/* The lanes of `low` and `high` from so many 128 bits on. */
#define NK_QUAD_ALIGN(high, low, by) _mm512_alignr_epi64(high, low, 2 * (by))

/* A row of pixels side by side, for a stride of 1 and at least `pixels` columns. The last 64 bytes
 * may be done twice in part. */
static inline __attribute__((always_inline)) void nk_quad_side_by_side(
    const nk_quads *k, const nk_clamps *clamps, const nk_quad_rows *rows, const int pixels,
    const int relu, const int open) {
    const nk_quad_rows r = *rows;
    const nk_clamps c = *clamps;
    const int32_t columns = (int32_t)r.columns;
    __m512i left[4], next[4], middle[4], right[4];
    nk_quad_pixels(&r, -r.pad, pixels, left);
    for (int32_t x = 0; x < columns; x += pixels) {
        if (x + pixels > columns) {
            x = columns - pixels;
            nk_quad_pixels(&r, x - r.pad, pixels, left);
        }
        nk_quad_pixels(&r, x - r.pad + pixels, pixels, next);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
            if (pixels == 2) right[j] = next[j];
            else if (pixels == 4) right[j] = NK_QUAD_ALIGN(next[j], left[j], 2);
            else right[j] = NK_QUAD_ALIGN(next[j], left[j], 1);
        }
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
            if (pixels == 8) middle[j] = j < 2 ? left[j + 2] : right[j - 2];
            else if (pixels == 4) middle[j] = NK_QUAD_ALIGN(next[j], left[j], 1);
            else middle[j] = NK_QUAD_ALIGN(next[j], left[j], 2);
        }
        nk_quad_put(k, &c, left, middle, right, r.to + (size_t)x * r.pixel, relu, open);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) left[j] = next[j];
    }
}

// clang-format off
#define NK_QUAD_ROW(relu, open)                                                                                     \
    static __attribute__((noinline)) void nk_quad_row_##relu##_##open(const nk_quads *k, const nk_clamps *c,        \
                                                                      const nk_quad_rows *r, uint32_t pixels) {     \
        if (pixels == 1 && r->stride == 1) nk_quad_channels(k, c, r, 1, relu, open);                                \
        else if (pixels == 1) nk_quad_channels(k, c, r, 2, relu, open);                                             \
        else if (pixels == 2) nk_quad_side_by_side(k, c, r, 2, relu, open);                                         \
        else if (pixels == 4) nk_quad_side_by_side(k, c, r, 4, relu, open);                                         \
        else nk_quad_side_by_side(k, c, r, 8, relu, open);                                                          \
    }
NK_QUAD_ROW(0, 0) NK_QUAD_ROW(0, 1) NK_QUAD_ROW(1, 0) NK_QUAD_ROW(1, 1)
    // clang-format on

    /* One row of output, `pixels` (1, 2, 4 or 8) in 64 bytes; strides of 1 and 2, the latter for 1
     * pixel alone. */
    static inline void nk_quad_row(const nk_quads *k, const nk_clamps *c, const nk_quad_rows *r,
                                   uint32_t pixels) {
    const int relu = k->lanes[0].relu != 0;
    if (relu && c->open) nk_quad_row_1_1(k, c, r, pixels);
    else if (relu) nk_quad_row_1_0(k, c, r, pixels);
    else if (c->open) nk_quad_row_0_1(k, c, r, pixels);
    else nk_quad_row_0_0(k, c, r, pixels);
}

#endif
#endif
