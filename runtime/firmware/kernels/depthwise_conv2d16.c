/* depthwise_conv2d16: output channel c is a window over the 16-bit input channel c /
 * depth_multiplier. */
#include "nk_simd.h"

static int32_t check(nk_call *call, const nk_depthwise_conv2d16_params *p) {
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D16_INPUT];
    const nk_operand *out = &call->operands[NK_DEPTHWISE_CONV2D16_OUTPUT];
    const int32_t common = nk_check_wide(call, in, &call->operands[NK_DEPTHWISE_CONV2D16_TABLE],
                                         out, p->narrow, p->clamp_low, p->clamp_high);
    if (common) return common;
    return nk_check_depthwise(call, p->depth_multiplier, in,
                              &call->operands[NK_DEPTHWISE_CONV2D16_WEIGHTS], out);
}

/* Positions [first, last) of a row of the window that lie inside the image, for output column x. */
static nk_span inside(const nk_depthwise_conv2d16_params *p, uint32_t width, int32_t x) {
    const int32_t start = x * p->stride_w - p->pad_left, step = p->dilation_w;
    const int32_t first = start < 0 ? (step - 1 - start) / step : 0;
    if (start >= 0 && (uint32_t)start >= width) return (nk_span){0, 0};
    const uint32_t room = width - (uint32_t)start; /* at most twice NK_REACH_MAX */
    return (nk_span){first,
                     nk_min((int32_t)((room + (uint32_t)step - 1) / (uint32_t)step), p->kernel_w)};
}

/* acc[m] += sum of input * weight over one row of the window, for `count` channels from `channel`
 * on; `weights` are those of its first tap, `row` that of the image. */
static void window_row(const nk_depthwise_conv2d16_params *p, const nk_operand *in,
                       const uint8_t *row, int32_t x, uint32_t channel, uint32_t count,
                       uint32_t units, const int8_t *weights, int64_t *acc) {
    const nk_span taps = inside(p, in->width, x);
    const uint32_t times = (uint32_t)p->depth_multiplier;
    nk_wide_row some = {.step = (size_t)p->dilation_w * in->pixel, .units = units};
    for (int32_t kx = taps.first; kx < taps.last; kx += NK_WIDE_TAPS) {
        const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
        const uint8_t *pixel = row + (size_t)ix * in->pixel;
        const int8_t *w = weights + (size_t)kx * units;
        some.taps = (uint32_t)nk_min(taps.last - kx, NK_WIDE_TAPS);
        if (times == 1) nk_wide_taps(&some, pixel + 2 * (size_t)channel, w, count, acc);
        for (uint32_t m = 0; m < count && times > 1; ++m)
            nk_wide_taps_portable(&some, pixel + 2 * (size_t)((channel + m) / times), w + m, 1,
                                  acc + m);
    }
}

static void pixel_of(const nk_call *call, const nk_depthwise_conv2d16_params *p,
                     const nk_wide_stage *stage, uint32_t image, int32_t y, int32_t x,
                     uint8_t *to) {
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D16_INPUT];
    const nk_operand *out = &call->operands[NK_DEPTHWISE_CONV2D16_OUTPUT];
    const int8_t *weights = (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D16_WEIGHTS].data;
    for (uint32_t channel = 0; channel < out->channels; channel += call->units) {
        const uint32_t left = out->channels - channel;
        const uint32_t count = left < call->units ? left : call->units;
        int64_t acc[NK_MAX_UNITS];
        nk_wide_clear(acc, call->units);
        for (int32_t ky = 0; ky < p->kernel_h; ++ky, weights += (size_t)p->kernel_w * call->units) {
            const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
            if (iy >= 0 && (uint32_t)iy < in->height)
                window_row(p, in, nk_row(in, image, iy), x, channel, count, call->units, weights,
                           acc);
        }
        for (uint32_t m = 0; m < count; ++m)
            nk_store16(to + 2 * (size_t)(channel + m),
                       nk_wide_stage_output(stage, channel + m, acc[m]));
    }
}

int32_t nk_depthwise_conv2d16(uint32_t verb, nk_call *call) {
    const nk_depthwise_conv2d16_params *p =
        (const nk_depthwise_conv2d16_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *out = &call->operands[NK_DEPTHWISE_CONV2D16_OUTPUT];
    const nk_wide_stage stage =
        nk_make_wide_stage(call, &call->operands[NK_DEPTHWISE_CONV2D16_TABLE], out->channels,
                           p->narrow, p->clamp_low, p->clamp_high);
    if (NK_SIMD(depthwise_conv2d16, call, &stage)) return 0;
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
