/* Dense products over few input channels. The packing fills each tap's inputs up to 8, so that a
 * window row of 3 pixels of 3 channels multiplies 24 bytes where 9 count. Where pixels lie side by
 * side, a row of the window is one run of bytes: panels without filling, and a copy of the weights
 * without it made per call, take 16. A tap's filling in the packing meets no input, and what a run
 * reads behind its end meets weights of 0, so the products are the same. */
#ifndef NK_THIN_H
#define NK_THIN_H

#include "dense.h"

#if NK_HAS_SIMD

#define NK_THIN_BYTES 8192 /* weights copied at a time */

/* Elements of a window row as whole blocks. */
static inline uint32_t nk_thin_run(const nk_dense *d) {
    return nk_blocks((uint32_t)d->p->kernel_w * d->inputs, NK_PACK) * NK_PACK;
}

/* 1 when at least a quarter of the products would be filling; a row of the window is multiplied in
 * runs of `unit` bytes. */
static inline int nk_thin_pays(const nk_dense *d, uint32_t unit) {
    const nk_conv2d_params *p = d->p;
    if (d->inputs >= NK_PACK || p->kernel_w > 64 || p->kernel_h > 64 || p->dilation_h != 1 ||
        p->dilation_w != 1)
        return 0;
    if ((uint32_t)p->kernel_h * nk_thin_run(d) * NK_PACK > NK_THIN_BYTES) return 0;
    return nk_blocks((uint32_t)p->kernel_w * d->inputs, unit) * unit * 4 <=
           (uint32_t)p->kernel_w * NK_PACK * 3;
}

/* Output channels whose weights are copied at a time. */
static inline uint32_t nk_thin_slice(const nk_dense *d, uint32_t most) {
    const uint32_t fit =
        NK_THIN_BYTES / ((uint32_t)d->p->kernel_h * nk_thin_run(d)) / NK_PACK * NK_PACK;
    return fit < most ? fit : most;
}

/* 8 bytes of each of 8 outputs: a block of the packing. */
typedef uint64_t nk_block64 __attribute__((vector_size(64), aligned(8)));

/* The weights of 8 output channels and one window row: `inputs` bytes of each tap, shifted
 * together. */
static inline void nk_thin_row(const nk_dense *d, const int8_t *from, int8_t *to) {
    const uint32_t bits = 8 * d->inputs;
    const uint64_t kept = ((uint64_t)1 << bits) - 1;
    nk_block64 words = {0};
    uint32_t at = 0;
    for (int32_t kx = 0; kx < d->p->kernel_w; ++kx, from += NK_PACK * NK_PACK) {
        nk_block64 taps;
        memcpy(&taps, from, sizeof taps);
        taps &= kept;
        words |= taps << at;
        at += bits;
        if (at < 64) continue;
        memcpy(to, &words, sizeof words);
        to += sizeof words, at -= 64;
        words = at ? taps >> (bits - at) : taps & 0;
    }
    if (at) memcpy(to, &words, sizeof words);
}

/* `d` with panels and weights without filling; the weights go to `weights` of NK_THIN_BYTES, unless
 * they are there already. */
static inline nk_dense nk_thin(const nk_dense *d, int8_t *weights, int fresh) {
    nk_dense thin = *d;
    const uint32_t rows = (uint32_t)d->p->kernel_h, run = nk_thin_run(d),
                   groups = nk_blocks(d->outputs, NK_PACK);
    thin.depth = d->inputs;
    thin.weights = weights;
    thin.group_bytes = (size_t)rows * run * NK_PACK;
    for (uint32_t g = 0; g < groups && fresh; ++g) {
        for (uint32_t ky = 0; ky < rows; ++ky) {
            const int8_t *from = d->weights + g * d->group_bytes +
                                 (size_t)ky * (uint32_t)d->p->kernel_w * NK_PACK * NK_PACK;
            int8_t *to = weights + g * thin.group_bytes + (size_t)ky * run * NK_PACK;
            nk_thin_row(d, from, to);
        }
    }
    return thin;
}

#endif
#endif
