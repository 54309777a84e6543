/* Windows of depth-wise convolutions over 16-bit activations, the same for every instruction set:
 * a row of the output is cut into runs of pixels whose taps all move on by the same step. */
#ifndef NK_DEPTHWISE16_H
#define NK_DEPTHWISE16_H

#include "wide.h"

#if NK_HAS_SIMD

#define NK_DEPTHWISE_PACK 8 /* M of the packing these loops read */
/* Taps of a window these loops take: at most 16 KiB of rearranged weights. */
#define NK_DEPTHWISE_TAPS 256
#define NK_DEPTHWISE_MOST 32 /* channels of a block at most */

typedef struct {
    const nk_depthwise_conv2d16_params *p;
    const nk_operand *in, *out;
    uint32_t taps, channel; /* first channel of the block at hand */
} nk_windows;

/* `count` pixels from `to` on: tap t of pixel i lies at taps[t] + i * step. There is one tap more
 * than the window has, whose weight is to be 0, so that they can be taken in pairs. */
typedef void (*nk_window_run)(const void *block, const uint8_t *const *taps, size_t step,
                              uint32_t count, uint8_t *to);

/* 1 when the call is one for these loops. */
static inline int nk_windows_of(const nk_call *call, nk_windows *w) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    w->p = (const nk_depthwise_conv2d16_params *)(const void *)call->params;
    w->in = &call->operands[NK_DEPTHWISE_CONV2D16_INPUT];
    w->out = &call->operands[NK_DEPTHWISE_CONV2D16_OUTPUT];
    const uint64_t taps = (uint64_t)w->p->kernel_h * (uint32_t)w->p->kernel_w;
    w->taps = (uint32_t)taps;
    return call->units == NK_DEPTHWISE_PACK && w->p->depth_multiplier == 1 &&
           taps <= NK_DEPTHWISE_TAPS;
}

/* Output columns whose whole window lies inside the image, [first, last). */
static inline nk_span nk_inner_columns(const nk_windows *w) {
    const nk_depthwise_conv2d16_params *p = w->p;
    const int32_t reach = (p->kernel_w - 1) * p->dilation_w;
    const int32_t first = (p->pad_left + p->stride_w - 1) / p->stride_w;
    const int64_t room = (int64_t)w->in->width - 1 - reach + p->pad_left;
    const int32_t last = room < 0 ? 0 : (int32_t)(room / p->stride_w) + 1;
    const int32_t width = (int32_t)w->out->width;
    return (nk_span){nk_min(first, width), nk_max(nk_min(last, width), nk_min(first, width))};
}

/* The rows of the input under row y of the output, from the block's channel on; NULL where there is
 * none. 1 when all are there. */
static inline int nk_find_rows(const nk_windows *w, uint32_t image, int32_t y,
                               const uint8_t **rows) {
    int whole = 1;
    int32_t iy = y * w->p->stride_h - w->p->pad_top;
    for (int32_t ky = 0; ky < w->p->kernel_h; ++ky, iy += w->p->dilation_h) {
        const int inside = iy >= 0 && (uint32_t)iy < w->in->height;
        rows[ky] = inside ? nk_row(w->in, image, iy) + 2 * (size_t)w->channel : NULL;
        whole &= inside;
    }
    return whole;
}

/* The taps of one output pixel, and the first again; those outside the image are zeros. */
static inline void nk_find_taps(const nk_windows *w, const uint8_t *const *rows, int32_t x,
                                const uint8_t **taps) {
    static const int16_t zeros[NK_DEPTHWISE_MOST];
    const int32_t height = w->p->kernel_h, width = w->p->kernel_w;
    int32_t ix = x * w->p->stride_w - w->p->pad_left;
    for (int32_t kx = 0; kx < width; ++kx, ix += w->p->dilation_w) {
        const int inside = ix >= 0 && (uint32_t)ix < w->in->width;
        const size_t at = inside ? (size_t)ix * w->in->pixel : 0;
        for (int32_t ky = 0; ky < height; ++ky)
            taps[ky * width + kx] = inside && rows[ky] ? rows[ky] + at : (const uint8_t *)zeros;
    }
    taps[height * width] = taps[0];
}

static inline void nk_window_row(const nk_windows *w, uint32_t image, int32_t y, nk_window_run run,
                                 const void *block) {
    const uint8_t *taps[NK_DEPTHWISE_TAPS + 1], *rows[NK_DEPTHWISE_TAPS];
    const int whole = nk_find_rows(w, image, y, rows);
    const nk_span inner = nk_inner_columns(w);
    const size_t step = (size_t)w->p->stride_w * w->in->pixel;
    uint8_t *to = nk_row(w->out, image, y) + 2 * (size_t)w->channel;
    for (int32_t x = 0, count; x < (int32_t)w->out->width; x += count) {
        nk_find_taps(w, rows, x, taps);
        count = whole && x >= inner.first && x < inner.last ? inner.last - x : 1;
        run(block, taps, step, (uint32_t)count, to + (size_t)x * w->out->pixel);
    }
}

/* Weight of a channel and tap in the packing. */
static inline int8_t nk_window_weight(const nk_windows *w, const int8_t *weights, uint32_t channel,
                                      uint32_t tap) {
    return weights[((size_t)channel / NK_DEPTHWISE_PACK * w->taps + tap) * NK_DEPTHWISE_PACK +
                   channel % NK_DEPTHWISE_PACK];
}

#endif
#endif
