/* depthwise_conv2d: output channel c is a window over input channel c / depth_multiplier. */
#include "nk_simd.h"

static int32_t check(nk_call *call, const nk_depthwise_conv2d_params *p) {
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D_INPUT],
                     *out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT];
    const int32_t common = nk_check_array(call, in, &call->operands[NK_DEPTHWISE_CONV2D_TABLE],
                                          &call->operands[NK_DEPTHWISE_CONV2D_LUT], out);
    if (common) return common;
    if (!nk_zero_ok(p->input_zero) || !nk_zero_ok(p->weights_zero))
        return nk_refuse(call, "a zero point is out of range");
    return nk_check_depthwise(call, p->depth_multiplier, in,
                              &call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS], out);
}

/* acc[m] += input * weight for one tap of `count` channels from `channel` on. */
static void tap(const uint8_t *pixel, int32_t flip, const nk_depthwise_conv2d_params *p,
                uint32_t channel, uint32_t count, const int8_t *weights, uint32_t *acc) {
    const uint32_t times = (uint32_t)p->depth_multiplier;
    if (times == 1) {
        nk_lanes(pixel ? pixel + channel : NULL, flip, p->input_zero, count, weights,
                 p->weights_zero, acc);
        return;
    }
    for (uint32_t m = 0; m < count; ++m) {
        const int32_t value = pixel ? nk_value(pixel[(channel + m) / times], flip) : p->input_zero;
        acc[m] += (uint32_t)(value * (weights[m] - p->weights_zero));
    }
}

static void pixel_of(const nk_call *call, const nk_depthwise_conv2d_params *p,
                     const nk_stage *stage, uint32_t image, int32_t y, int32_t x, uint8_t *to) {
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D_INPUT],
                     *out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT];
    const int8_t *weights = (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS].data;
    for (uint32_t channel = 0; channel < out->channels; channel += call->units) {
        const uint32_t count =
            out->channels - channel < call->units ? out->channels - channel : call->units;
        uint32_t acc[NK_MAX_UNITS] = {0};
        for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
            const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
            const uint8_t *row =
                iy >= 0 && (uint32_t)iy < in->height ? nk_row(in, image, iy) : NULL;
            for (int32_t kx = 0; kx < p->kernel_w; ++kx, weights += call->units) {
                const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
                const int inside = row && ix >= 0 && (uint32_t)ix < in->width;
                tap(inside ? row + (size_t)ix * in->pixel : NULL, nk_flip(in), p, channel, count,
                    weights, acc);
            }
        }
        for (uint32_t m = 0; m < count; ++m) {
            const int32_t total = nk_wrap_add((int32_t)acc[m], nk_stage_bias(stage, channel + m));
            to[channel + m] = nk_stage_output(stage, channel + m, total);
        }
    }
}

int32_t nk_depthwise_conv2d(uint32_t verb, nk_call *call) {
    const nk_depthwise_conv2d_params *p =
        (const nk_depthwise_conv2d_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT];
    const nk_stage stage = nk_make_stage(call, &call->operands[NK_DEPTHWISE_CONV2D_TABLE],
                                         &call->operands[NK_DEPTHWISE_CONV2D_LUT], out->channels,
                                         p->output_zero, p->clamp_low, p->clamp_high);
    if (NK_SIMD(depthwise_conv2d, call, &stage)) return 0;
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
