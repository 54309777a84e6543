/* transpose_conv2d: each output pixel gathers the taps (iy, ky) with iy * stride - pad + ky equal
 * to its row, and the same for columns. Which taps exist differs from pixel to pixel, so the
 * input's zero point is subtracted here. */
#include "nk_window.h"

static int32_t check(nk_call *call, const nk_transpose_conv2d_params *p) {
    const nk_operand *in = &call->operands[NK_TRANSPOSE_CONV2D_INPUT],
                     *out = &call->operands[NK_TRANSPOSE_CONV2D_OUTPUT];
    const int32_t common = nk_check_array(call, in, &call->operands[NK_TRANSPOSE_CONV2D_TABLE],
                                          &call->operands[NK_TRANSPOSE_CONV2D_LUT], out);
    if (common) return common;
    if (!nk_zero_ok(p->input_zero) || !nk_zero_ok(p->weights_zero))
        return nk_refuse(call, "a zero point is out of range");
    return nk_check_transposed(call, in, &call->operands[NK_TRANSPOSE_CONV2D_WEIGHTS], out);
}

static void pixel_of(const nk_call *call, const nk_transpose_conv2d_params *p,
                     const nk_stage *stage, uint32_t image, int32_t y, int32_t x, uint8_t *to) {
    const nk_operand *in = &call->operands[NK_TRANSPOSE_CONV2D_INPUT],
                     *out = &call->operands[NK_TRANSPOSE_CONV2D_OUTPUT];
    const size_t tap_bytes = (size_t)nk_dense_bytes(call, 1, 1, in->channels);
    const int8_t *weights = (const int8_t *)call->operands[NK_TRANSPOSE_CONV2D_WEIGHTS].data;
    for (uint32_t channel = 0; channel < out->channels; channel += call->units) {
        const uint32_t count =
            out->channels - channel < call->units ? out->channels - channel : call->units;
        /* Sums of x * w and of zero * w, whose difference counts; likewise of x and zero for a
         * weight zero point. */
        uint32_t acc[NK_MAX_UNITS] = {0}, zeros[NK_MAX_UNITS] = {0}, sum = 0;
        for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
            const int32_t iy = nk_source_of(y, p->pad_top, ky, p->stride_h, in->height);
            for (int32_t kx = 0; kx < p->kernel_w; ++kx, weights += tap_bytes) {
                const int32_t ix =
                    iy < 0 ? -1 : nk_source_of(x, p->pad_left, kx, p->stride_w, in->width);
                if (ix < 0) continue;
                const uint8_t *pixel = nk_row(in, image, iy) + (size_t)ix * in->pixel;
                sum += nk_dot(call, pixel, nk_flip(in), 0, in->channels, weights, acc);
                sum -= nk_dot(call, NULL, 0, p->input_zero, in->channels, weights, zeros);
            }
        }
        for (uint32_t m = 0; m < count; ++m) {
            const uint32_t dot = acc[m] - zeros[m] - sum * (uint32_t)p->weights_zero;
            const int32_t total = nk_wrap_add((int32_t)dot, nk_stage_bias(stage, channel + m));
            to[channel + m] = nk_stage_output(stage, channel + m, total);
        }
    }
}

int32_t nk_transpose_conv2d(uint32_t verb, nk_call *call) {
    const nk_transpose_conv2d_params *p =
        (const nk_transpose_conv2d_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *out = &call->operands[NK_TRANSPOSE_CONV2D_OUTPUT];
    const nk_stage stage = nk_make_stage(call, &call->operands[NK_TRANSPOSE_CONV2D_TABLE],
                                         &call->operands[NK_TRANSPOSE_CONV2D_LUT], out->channels,
                                         p->output_zero, p->clamp_low, p->clamp_high);
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
