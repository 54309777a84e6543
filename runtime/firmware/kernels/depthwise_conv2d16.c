/* depthwise_conv2d16: output channel c is a window over the 16-bit input channel c /
 * depth_multiplier. */
#include "nk_simd.h"

static int32_t check(nk_call *call, const nk_depthwise_conv2d16_params *p) {
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D16_INPUT];
    const nk_operand *out = &call->operands[NK_DEPTHWISE_CONV2D16_OUTPUT];
    const nk_window window = {p->kernel_h,   p->kernel_w,   p->stride_h, p->stride_w,
                              p->dilation_h, p->dilation_w, p->pad_top,  p->pad_left};
    const int32_t common = nk_check_wide(call, in, &call->operands[NK_DEPTHWISE_CONV2D16_TABLE],
                                         out, p->narrow, p->clamp_low, p->clamp_high);
    if (common) return common;
    if (!nk_window_ok(&window, in, out)) return nk_refuse(call, "the window is out of range");
    if (p->depth_multiplier < 1 ||
        nk_times(in->channels, (uint32_t)p->depth_multiplier) != out->channels)
        return nk_refuse(call, "output channels are not input channels times the depth multiplier");
    const uint64_t taps = (uint64_t)p->kernel_h * (uint32_t)p->kernel_w;
    const uint64_t channels = (uint64_t)nk_blocks(out->channels, call->units) * call->units;
    if (!nk_inside_flat(&call->operands[NK_DEPTHWISE_CONV2D16_WEIGHTS], nk_times(taps, channels)))
        return nk_refuse(call, "the weights leave their region");
    return 0;
}

/* acc[m] += input * weight for one tap of `count` channels from `channel` on. */
static void tap(const uint8_t *pixel, uint32_t times, uint32_t channel, uint32_t count,
                const int8_t *weights, int64_t *acc) {
    for (uint32_t m = 0; m < count; ++m) {
        const uint32_t source = times == 1 ? channel + m : (channel + m) / times;
        acc[m] += nk_load16(pixel + 2 * (size_t)source) * weights[m];
    }
}

static void pixel_of(const nk_call *call, const nk_depthwise_conv2d16_params *p,
                     const nk_wide_stage *stage, uint32_t image, int32_t y, int32_t x,
                     uint8_t *to) {
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D16_INPUT];
    const nk_operand *out = &call->operands[NK_DEPTHWISE_CONV2D16_OUTPUT];
    const uint32_t times = (uint32_t)p->depth_multiplier;
    const int8_t *weights = (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D16_WEIGHTS].data;
    for (uint32_t channel = 0; channel < out->channels; channel += call->units) {
        const uint32_t left = out->channels - channel;
        const uint32_t count = left < call->units ? left : call->units;
        int64_t acc[NK_MAX_UNITS] = {0};
        for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
            const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
            const int inside = iy >= 0 && (uint32_t)iy < in->height;
            for (int32_t kx = 0; kx < p->kernel_w; ++kx, weights += call->units) {
                const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
                if (!inside || ix < 0 || (uint32_t)ix >= in->width) continue;
                tap(nk_row(in, image, iy) + (size_t)ix * in->pixel, times, channel, count, weights,
                    acc);
            }
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
