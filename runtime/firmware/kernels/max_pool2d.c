/* max_pool2d: the largest of the taps inside the image. */
#include "nk_simd.h"

static int32_t check(nk_call *call, const nk_max_pool2d_params *p) {
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    const nk_window window = {p->kernel_h, p->kernel_w, p->stride_h, p->stride_w,
                              1,           1,           p->pad_top,  p->pad_left};
    return nk_check_pool(call, &window, in, &call->operands[NK_MAX_POOL2D_LUT], out);
}

static int32_t pool(const nk_operand *in, uint32_t image, nk_span rows, nk_span columns,
                    uint32_t channel) {
    int32_t best = INT32_MIN;
    for (int32_t iy = rows.first; iy < rows.last; ++iy) {
        const uint8_t *row = nk_row(in, image, iy) + (size_t)channel * nk_item(in);
        for (int32_t ix = columns.first; ix < columns.last; ++ix)
            best = nk_max(best, nk_read(in, row + (size_t)ix * in->pixel));
    }
    return best;
}

int32_t nk_max_pool2d(uint32_t verb, nk_call *call) {
    const nk_max_pool2d_params *p = (const nk_max_pool2d_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    const nk_stage stage = nk_make_stage(call, NULL, &call->operands[NK_MAX_POOL2D_LUT], 0, 0,
                                         p->clamp_low, p->clamp_high);
    if (nk_is_byte(in) && NK_SIMD(max_pool2d, call, &stage)) return 0;
    if (nk_is_wide(in) && NK_SIMD(max_pool2d16, call, &stage)) return 0;
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const nk_span rows = nk_span_of(y, p->stride_h, p->pad_top, p->kernel_h, in->height);
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                if (nk_stopped(call)) return 0;
                const nk_span columns =
                    nk_span_of((int32_t)x, p->stride_w, p->pad_left, p->kernel_w, in->width);
                for (uint32_t c = 0; c < out->channels; ++c)
                    nk_write(out, to + (size_t)c * nk_item(out),
                             nk_finish_as(&stage, out, pool(in, image, rows, columns, c)));
            }
        }
    }
    return 0;
}
