/* conv2d16: dense and grouped convolution of 16-bit activations with 8-bit weights. */
#include "nk_simd.h"

static int32_t check(nk_call *call, const nk_conv2d16_params *p) {
    const nk_operand *in = &call->operands[NK_CONV2D16_INPUT];
    const nk_operand *out = &call->operands[NK_CONV2D16_OUTPUT];
    const int32_t common = nk_check_wide(call, in, &call->operands[NK_CONV2D16_TABLE], out,
                                         p->narrow, p->clamp_low, p->clamp_high);
    if (common) return common;
    return nk_check_dense(call, p->groups, in, &call->operands[NK_CONV2D16_WEIGHTS], out);
}

/* All taps of one output pixel for one block of M channels; `first` is the group's first input. */
static void accumulate(const nk_call *call, const nk_conv2d16_params *p, uint32_t image, int32_t y,
                       int32_t x, uint32_t first, uint32_t inputs, const int8_t *weights,
                       int64_t *acc) {
    const nk_operand *in = &call->operands[NK_CONV2D16_INPUT];
    const size_t tap_bytes = (size_t)nk_blocks(inputs, call->length) * call->units * call->length;
    for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int inside = iy >= 0 && (uint32_t)iy < in->height;
        for (int32_t kx = 0; kx < p->kernel_w; ++kx, weights += tap_bytes) {
            const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
            if (!inside || ix < 0 || (uint32_t)ix >= in->width) continue;
            const uint8_t *pixel = nk_row(in, image, iy) + (size_t)ix * in->pixel;
            nk_wide_dot(call, pixel + 2 * (size_t)first, inputs, weights, acc);
        }
    }
}

static void pixel_of(const nk_call *call, const nk_conv2d16_params *p, const nk_wide_stage *stage,
                     uint32_t image, int32_t y, int32_t x, uint8_t *to) {
    const nk_operand *in = &call->operands[NK_CONV2D16_INPUT];
    const nk_operand *out = &call->operands[NK_CONV2D16_OUTPUT];
    const uint32_t groups = (uint32_t)p->groups;
    const uint32_t inputs = in->channels / groups, outputs = out->channels / groups;
    const size_t block_bytes =
        (size_t)nk_dense_bytes(call, 1, (uint64_t)p->kernel_h * (uint32_t)p->kernel_w, inputs);
    const int8_t *weights = (const int8_t *)call->operands[NK_CONV2D16_WEIGHTS].data;
    for (uint32_t group = 0; group < groups; ++group) {
        for (uint32_t block = 0; block < outputs; block += call->units, weights += block_bytes) {
            const size_t channel = (size_t)group * outputs + block;
            const uint32_t count = outputs - block < call->units ? outputs - block : call->units;
            int64_t acc[NK_MAX_UNITS];
            nk_wide_clear(acc, call->units);
            accumulate(call, p, image, y, x, group * inputs, inputs, weights, acc);
            for (uint32_t m = 0; m < count; ++m)
                nk_store16(to + 2 * (channel + m),
                           nk_wide_stage_output(stage, channel + m, acc[m]));
        }
    }
}

int32_t nk_conv2d16(uint32_t verb, nk_call *call) {
    const nk_conv2d16_params *p = (const nk_conv2d16_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *out = &call->operands[NK_CONV2D16_OUTPUT];
    const nk_wide_stage stage =
        nk_make_wide_stage(call, &call->operands[NK_CONV2D16_TABLE], out->channels, p->narrow,
                           p->clamp_low, p->clamp_high);
    if (NK_SIMD(conv2d16, call, &stage)) return 0;
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
