/* transpose_conv2d16: transpose_conv2d for 16-bit activations; no zero point, so only the taps that
 * exist are summed. */
#include "nk_wide.h"

static int32_t check(nk_call *call, const nk_transpose_conv2d16_params *p) {
    const nk_operand *in = &call->operands[NK_TRANSPOSE_CONV2D16_INPUT];
    const nk_operand *out = &call->operands[NK_TRANSPOSE_CONV2D16_OUTPUT];
    const int32_t common = nk_check_wide(call, in, &call->operands[NK_TRANSPOSE_CONV2D16_TABLE],
                                         out, p->narrow, p->clamp_low, p->clamp_high);
    if (common) return common;
    return nk_check_transposed(call, in, &call->operands[NK_TRANSPOSE_CONV2D16_WEIGHTS], out);
}

static void pixel_of(const nk_call *call, const nk_transpose_conv2d16_params *p,
                     const nk_wide_stage *stage, uint32_t image, int32_t y, int32_t x,
                     uint8_t *to) {
    const nk_operand *in = &call->operands[NK_TRANSPOSE_CONV2D16_INPUT];
    const nk_operand *out = &call->operands[NK_TRANSPOSE_CONV2D16_OUTPUT];
    const size_t tap_bytes = (size_t)nk_dense_bytes(call, 1, 1, in->channels);
    const int8_t *weights = (const int8_t *)call->operands[NK_TRANSPOSE_CONV2D16_WEIGHTS].data;
    for (uint32_t channel = 0; channel < out->channels; channel += call->units) {
        const uint32_t left = out->channels - channel;
        const uint32_t count = left < call->units ? left : call->units;
        int64_t acc[NK_MAX_UNITS];
        nk_wide_clear(acc, call->units);
        for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
            const int32_t iy = nk_source_of(y, p->pad_top, ky, p->stride_h, in->height);
            for (int32_t kx = 0; kx < p->kernel_w; ++kx, weights += tap_bytes) {
                const int32_t ix =
                    iy < 0 ? -1 : nk_source_of(x, p->pad_left, kx, p->stride_w, in->width);
                if (ix < 0) continue;
                const uint8_t *pixel = nk_row(in, image, iy) + (size_t)ix * in->pixel;
                nk_wide_dot(call, pixel, in->channels, weights, acc);
            }
        }
        for (uint32_t m = 0; m < count; ++m)
            nk_store16(to + 2 * (size_t)(channel + m),
                       nk_wide_stage_output(stage, channel + m, acc[m]));
    }
}

int32_t nk_transpose_conv2d16(uint32_t verb, nk_call *call) {
    const nk_transpose_conv2d16_params *p =
        (const nk_transpose_conv2d16_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *out = &call->operands[NK_TRANSPOSE_CONV2D16_OUTPUT];
    const nk_wide_stage stage =
        nk_make_wide_stage(call, &call->operands[NK_TRANSPOSE_CONV2D16_TABLE], out->channels,
                           p->narrow, p->clamp_low, p->clamp_high);
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *row = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x) {
                if (nk_stopped(call)) return 0;
                pixel_of(call, p, &stage, image, y, (int32_t)x, row + (size_t)x * out->pixel);
            }
        }
    }
    return 0;
}
