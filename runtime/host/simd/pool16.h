/* Windows of pools over 16-bit activations, the same for every instruction set. Channels that are
 * no multiple of the 8 lanes end with a vector that reaches back over finished ones; images with
 * fewer are left to the definition.
 *
 * A loop file calls nk_pool16 with a function for 8 channels of a pixel. */
#ifndef NK_POOL16_H
#define NK_POOL16_H

#include "nk_simd.h"

#if NK_HAS_SIMD

#define NK_POOL_LANES 8
#define NK_POOL_ROWS 256 /* of a window; 2 KiB of addresses */
/* Up to this many taps the float quotient below is exact.
 *
 * (|sum| + n/2) / n with the sign put back: the dividend is below 2^22, exact in float; half a step
 * of 1/n is added, so that the product lies at least 1/(2n) >= 2^-7 from every integer. It is below
 * 2^15 + 1, so that its error is below 3 * 2^-9: truncation finds the quotient. */
#define NK_POOL_TAPS 64

/* The taps of one output pixel: rows by address, because those of a ring wrap around. */
typedef struct {
    const uint8_t *rows[NK_POOL_ROWS];
    int32_t count; /* rows inside the image */
    nk_span columns;
    size_t pixel;
    int32_t low, high; /* the clamp */
} nk_pool;

/* 8 channels from `channel` on. */
typedef void (*nk_pool8)(const nk_pool *t, uint32_t channel, uint8_t *to);

/* Both pools have the same parameters. */
static inline int nk_pool16(const nk_call *call, const nk_stage *stage, nk_pool8 pool) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_max_pool2d_params *p = (const nk_max_pool2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    const uint32_t channels = out->channels;
    if (channels < NK_POOL_LANES || p->kernel_h > NK_POOL_ROWS ||
        !nk_clamp16_ok(stage->low, stage->high))
        return 0;
    nk_pool t;
    t.pixel = in->pixel, t.low = stage->low, t.high = stage->high;
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const nk_span rows = nk_span_of(y, p->stride_h, p->pad_top, p->kernel_h, in->height);
            uint8_t *to = nk_row(out, image, y);
            t.count = nk_max(rows.last - rows.first, 0);
            for (int32_t i = 0; i < t.count; ++i) t.rows[i] = nk_row(in, image, rows.first + i);
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                t.columns =
                    nk_span_of((int32_t)x, p->stride_w, p->pad_left, p->kernel_w, in->width);
                for (uint32_t c = 0; c < channels; c += NK_POOL_LANES) {
                    const uint32_t from =
                        c + NK_POOL_LANES <= channels ? c : channels - NK_POOL_LANES;
                    pool(&t, from, to + 2 * (size_t)from);
                }
            }
        }
    }
    return 1;
}

/* The definition's mean, for more taps than the float quotient is exact for. */
static inline int32_t nk_exact_mean(int32_t sum, int32_t n) {
    return n ? (sum > 0 ? sum + n / 2 : sum - n / 2) / n : 0;
}

#endif
#endif
