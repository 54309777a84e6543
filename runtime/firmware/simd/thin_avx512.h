/* Dense products over few input channels. The packing fills each tap's inputs up to 8, so that a 3 x 3 window over 3 channels
 * multiplies 72 bytes where 27 count. Here the window's bytes are laid one after the other, in the panel and in a copy of the
 * weights made per call. A tap's filling in the packing has no input, so leaving it out changes nothing. */
#ifndef NK_THIN_AVX512_H
#define NK_THIN_AVX512_H

#include "dense.h"

#if NK_HAS_SIMD

#define NK_THIN_BYTES 8192 /* weights copied at a time */
#define NK_THIN_DEPTH 512  /* bytes of a window: above, the filling is a small share of other costs */

/* Bytes of a window without filling, as whole blocks. */
static inline uint32_t nk_thin_depth(const nk_dense *d) {
    return nk_blocks((uint32_t)(d->p->kernel_h * d->p->kernel_w) * d->inputs, NK_PACK) * NK_PACK;
}

/* 1 when at least a quarter of the products would be filling; `taps` is the window's size. */
static inline int nk_thin_pays(const nk_dense *d, uint64_t taps) {
    if (taps < 2 || d->inputs >= NK_PACK || taps > NK_THIN_DEPTH || nk_thin_depth(d) > NK_THIN_DEPTH) return 0;
    return (uint64_t)nk_thin_depth(d) * 4 <= taps * NK_PACK * 3;
}

/* Output channels whose weights are copied at a time. */
static inline uint32_t nk_thin_slice(const nk_dense *d) {
    const uint32_t fit = NK_THIN_BYTES / nk_thin_depth(d) / NK_PACK * NK_PACK;
    return fit < NK_SLICE ? fit : NK_SLICE;
}

static inline uint64_t nk_load64(const void *from) {
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Exactly `count` bytes, made unsigned; two words that overlap take what is between their sizes. */
static inline __attribute__((always_inline)) void nk_thin_copy(uint8_t *to, const uint8_t *from, uint32_t count, uint64_t flip) {
    if (count >= 8) {
        uint32_t i = 0;
        for (; i + 8 <= count; i += 8) {
            const uint64_t word = nk_load64(from + i) ^ flip;
            memcpy(to + i, &word, 8);
        }
        const uint64_t last = nk_load64(from + count - 8) ^ flip;
        memcpy(to + count - 8, &last, 8);
        return;
    }
    for (uint32_t i = 0; i < count; ++i) to[i] = from[i] ^ (uint8_t)flip;
}

/* One row of a window that crosses the image's border, or whose pixels are not side by side. */
static inline void nk_thin_taps(const nk_dense *d, uint8_t *to, const uint8_t *row, int32_t x, uint64_t flip) {
    for (int32_t kx = 0; kx < d->p->kernel_w; ++kx, x += d->p->dilation_w, to += d->inputs) {
        if (row && (uint32_t)x < d->in->width) nk_thin_copy(to, row + (size_t)x * d->in->pixel, d->inputs, flip);
        else memset(to, (uint8_t)d->p->input_zero ^ d->flip, d->inputs);
    }
}

/* Row ky of the windows of `count` output pixels from x on: `run` bytes each, `depth` apart. */
static inline void nk_thin_row(const nk_dense *d, uint8_t *to, const uint8_t *row, int32_t x, uint32_t count, uint32_t depth) {
    const nk_conv2d_params *p = d->p;
    const uint64_t flip = 0x0101010101010101u * d->flip;
    const uint32_t run = (uint32_t)p->kernel_w * d->inputs;
    const int near = row && d->in->pixel == d->inputs && p->dilation_w == 1;
    int32_t at = x * p->stride_w - p->pad_left;
    for (uint32_t c = 0; c < count; ++c, at += p->stride_w, to += depth) {
        if (!near || at < 0 || (uint32_t)(at + p->kernel_w) > d->in->width) nk_thin_taps(d, to, row, at, flip);
        else if (run == 9) nk_thin_copy(to, row + (size_t)at * d->in->pixel, 9, flip); /* the usual first layer */
        else nk_thin_copy(to, row + (size_t)at * d->in->pixel, run, flip);
    }
}

/* The packed weights of `d` without the filling of taps, [outputs/8][depth/8][8][8]. */
static inline void nk_thin_weights(const nk_dense *d, int8_t *to, uint32_t depth) {
    const uint32_t taps = (uint32_t)(d->p->kernel_h * d->p->kernel_w), groups = nk_blocks(d->outputs, NK_PACK);
    const uint64_t kept = ((uint64_t)1 << (8 * d->inputs)) - 1;
    for (uint32_t g = 0; g < groups; ++g, to += (size_t)depth * NK_PACK) {
        for (uint32_t m = 0; m < NK_PACK; ++m) {
            const int8_t *from = d->weights + g * d->group_bytes + m * NK_PACK;
            uint8_t row[NK_THIN_DEPTH + NK_PACK];
            memset(row + depth - NK_PACK, 0, 2 * NK_PACK);
            /* Each word's zeros are overwritten by the next tap's. */
            for (uint32_t t = 0; t < taps; ++t) {
                const uint64_t word = nk_load64(from + (size_t)t * NK_PACK * NK_PACK) & kept;
                memcpy(row + t * d->inputs, &word, 8);
            }
            for (uint32_t k = 0; k < depth; k += NK_PACK) memcpy(to + k * NK_PACK + m * NK_PACK, row + k, NK_PACK);
        }
    }
}

/* All blocks of rows [row0, row1) of one image; `d` has the weights of nk_thin_weights. */
static inline void nk_thin_run(const nk_dense *d, uint32_t image, int32_t row0, int32_t row1, uint32_t depth, nk_product product,
                               const void *state) {
    const nk_conv2d_params *p = d->p;
    uint8_t panel[NK_PANEL_GOAL] __attribute__((aligned(64)));
    const uint32_t most = NK_PANEL_GOAL / depth, width = d->out->width, run = (uint32_t)p->kernel_w * d->inputs;
    const uint32_t columns = width < most ? width : nk_blocks(width, nk_blocks(width, most));
    for (int32_t y = row0; y < row1;) {
        nk_block b = {.panel = panel, .image = image, .y = y, .outer = 1, .length = depth / NK_PACK, .step = depth};
        b.rows = (uint32_t)nk_min((int32_t)(most / columns), row1 - y);
        for (uint32_t x = 0; x < width; x += columns) {
            b.x = (int32_t)x;
            b.columns = width - x < columns ? width - x : columns;
            b.row_step = (size_t)b.columns * depth;
            for (uint32_t c = 0; c < b.rows * b.columns; ++c) memset(panel + (size_t)(c + 1) * depth - NK_PACK, d->flip, NK_PACK);
            for (uint32_t r = 0; r < b.rows; ++r) {
                for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
                    const int32_t iy = (y + (int32_t)r) * p->stride_h - p->pad_top + ky * p->dilation_h;
                    const int inside = iy >= 0 && (uint32_t)iy < d->in->height;
                    nk_thin_row(d, panel + r * b.row_step + (uint32_t)ky * run, inside ? nk_row(d->in, image, iy) + d->first_in : NULL,
                                b.x, b.columns, depth);
                }
            }
            product(d, &b, state);
        }
        y += (int32_t)b.rows;
    }
}

#endif
#endif
