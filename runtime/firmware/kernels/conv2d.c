/* conv2d: dense and grouped convolution over packed weights. Taps outside the image count as the
 * input's zero point, which is already folded into the bias. */
#include "nk_simd.h"

static int32_t check(nk_call *call, const nk_conv2d_params *p) {
    const nk_operand *in = &call->operands[NK_CONV2D_INPUT],
                     *out = &call->operands[NK_CONV2D_OUTPUT];
    const int32_t common = nk_check_array(call, in, &call->operands[NK_CONV2D_TABLE],
                                          &call->operands[NK_CONV2D_LUT], out);
    if (common) return common;
    if (!nk_zero_ok(p->input_zero) || !nk_zero_ok(p->weights_zero))
        return nk_refuse(call, "a zero point is out of range");
    return nk_check_dense(call, p->groups, in, &call->operands[NK_CONV2D_WEIGHTS], out);
}

/* Accumulate all taps of one output pixel for one block of M channels; `first` is the group's first
 * input channel. */
static void accumulate(const nk_call *call, const nk_conv2d_params *p, uint32_t image, int32_t y,
                       int32_t x, uint32_t first, uint32_t inputs, const int8_t *weights,
                       uint32_t *acc) {
    const nk_operand *in = &call->operands[NK_CONV2D_INPUT];
    const int32_t flip = nk_flip(in);
    const size_t tap_bytes = (size_t)nk_blocks(inputs, call->length) * call->units * call->length;
    uint32_t sum = 0;
    for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const uint8_t *row = iy >= 0 && (uint32_t)iy < in->height ? nk_row(in, image, iy) : NULL;
        for (int32_t kx = 0; kx < p->kernel_w; ++kx, weights += tap_bytes) {
            const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
            const int inside = row && ix >= 0 && (uint32_t)ix < in->width;
            const uint8_t *pixel = inside ? row + (size_t)ix * in->pixel + first : NULL;
            sum += nk_dot(call, pixel, flip, p->input_zero, inputs, weights, acc);
        }
    }
    const uint32_t correction = sum * (uint32_t)p->weights_zero;
    for (uint32_t m = 0; m < call->units; ++m) acc[m] -= correction;
}

static void pixel_of(const nk_call *call, const nk_conv2d_params *p, const nk_stage *stage,
                     uint32_t image, int32_t y, int32_t x, uint8_t *to) {
    const nk_operand *in = &call->operands[NK_CONV2D_INPUT],
                     *out = &call->operands[NK_CONV2D_OUTPUT];
    const uint32_t groups = (uint32_t)p->groups, inputs = in->channels / groups,
                   outputs = out->channels / groups;
    const size_t block_bytes =
        (size_t)nk_dense_bytes(call, 1, (uint64_t)p->kernel_h * (uint32_t)p->kernel_w, inputs);
    const int8_t *weights = (const int8_t *)call->operands[NK_CONV2D_WEIGHTS].data;
    for (uint32_t group = 0; group < groups; ++group) {
        for (uint32_t block = 0; block < outputs; block += call->units, weights += block_bytes) {
            const size_t channel = (size_t)group * outputs + block;
            const uint32_t count = outputs - block < call->units ? outputs - block : call->units;
            uint32_t acc[NK_MAX_UNITS] = {0};
            accumulate(call, p, image, y, x, group * inputs, inputs, weights, acc);
            for (uint32_t m = 0; m < count; ++m) {
                const int32_t total =
                    nk_wrap_add((int32_t)acc[m], nk_stage_bias(stage, channel + m));
                to[channel + m] = nk_stage_output(stage, channel + m, total);
            }
        }
    }
}

int32_t nk_conv2d(uint32_t verb, nk_call *call) {
    const nk_conv2d_params *p = (const nk_conv2d_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *out = &call->operands[NK_CONV2D_OUTPUT];
    const nk_stage stage =
        nk_make_stage(call, &call->operands[NK_CONV2D_TABLE], &call->operands[NK_CONV2D_LUT],
                      out->channels, p->output_zero, p->clamp_low, p->clamp_high);
    if (NK_SIMD(conv2d, call, &stage)) return 0;
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
