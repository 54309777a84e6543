/* Shared by max_pool2d and avg_pool2d, which have the same operands and parameters. */
#ifndef NK_POOL_H
#define NK_POOL_H

#include "nk_simd.h"

/* Check of a pool: one type of 8 or 16 bits, same channels and batch, a window that fits. */
static inline int32_t nk_check_pool(nk_call *call, const nk_operand *in, const nk_operand *lut,
                                    const nk_operand *out) {
    const nk_window window = nk_undilated(call);
    if ((!nk_is_byte(in) || !nk_is_byte(out)) && !nk_same_type(in, out))
        return nk_refuse(call, "input and output must be of 8 bits, or both of 16");
    if (nk_is_wide(out) && lut->present)
        return nk_refuse(call, "elements of 16 bits take no table");
    if (in->batch != out->batch || in->channels != out->channels)
        return nk_refuse(call, "input and output differ in batch or channels");
    if (call->units < 1) return nk_refuse(call, "the packing has no units");
    if (!nk_window_ok(&window, in, out)) return nk_refuse(call, "the window is out of range");
    if (!nk_inside(in) || !nk_inside(out) || !nk_lut_ok(lut))
        return nk_refuse(call, "an operand leaves its region");
    return 0;
}

/* One output channel from its taps: the positions of the window inside the image. */
typedef int32_t (*nk_pool_taps)(const nk_operand *in, uint32_t image, nk_span rows, nk_span columns,
                                uint32_t channel);

/* The rows of a call, pixel by pixel. */
static inline void nk_pool_rows(const nk_call *call, const nk_stage *stage, nk_pool_taps pool) {
    const nk_max_pool2d_params *p = (const nk_max_pool2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const nk_span rows = nk_span_of(y, p->stride_h, p->pad_top, p->kernel_h, in->height);
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                if (nk_stopped(call)) return;
                const nk_span columns =
                    nk_span_of((int32_t)x, p->stride_w, p->pad_left, p->kernel_w, in->width);
                for (uint32_t c = 0; c < out->channels; ++c)
                    nk_write(out, to + (size_t)c * nk_item(out),
                             nk_finish_as(stage, out, pool(in, image, rows, columns, c)));
            }
        }
    }
}

#endif
