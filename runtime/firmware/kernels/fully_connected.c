/* fully_connected: every pixel of the input is one vector; rounding is the call's exact mode. */
#include "nk_simd.h"

static int32_t check(nk_call *call, const nk_fully_connected_params *p) {
    const nk_operand *in = &call->operands[NK_FULLY_CONNECTED_INPUT],
                     *out = &call->operands[NK_FULLY_CONNECTED_OUTPUT];
    const int32_t common = nk_check_array(call, in, &call->operands[NK_FULLY_CONNECTED_TABLE],
                                          &call->operands[NK_FULLY_CONNECTED_LUT], out);
    if (common) return common;
    if (in->height != out->height || in->width != out->width)
        return nk_refuse(call, "input and output differ in vectors");
    if (!nk_zero_ok(p->weights_zero)) return nk_refuse(call, "a zero point is out of range");
    if (!nk_inside_flat(&call->operands[NK_FULLY_CONNECTED_WEIGHTS],
                        nk_dense_bytes(call, out->channels, 1, in->channels)))
        return nk_refuse(call, "the weights leave their region");
    return 0;
}

static void vector(const nk_call *call, const nk_fully_connected_params *p, const nk_stage *stage,
                   const uint8_t *from, uint8_t *to) {
    const nk_operand *in = &call->operands[NK_FULLY_CONNECTED_INPUT],
                     *out = &call->operands[NK_FULLY_CONNECTED_OUTPUT];
    const size_t block_bytes = (size_t)nk_dense_bytes(call, 1, 1, in->channels);
    const int8_t *weights = (const int8_t *)call->operands[NK_FULLY_CONNECTED_WEIGHTS].data;
    for (uint32_t channel = 0; channel < out->channels;
         channel += call->units, weights += block_bytes) {
        const uint32_t count =
            out->channels - channel < call->units ? out->channels - channel : call->units;
        uint32_t acc[NK_MAX_UNITS] = {0};
        const uint32_t sum = nk_dot(call, from, nk_flip(in), 0, in->channels, weights, acc);
        const uint32_t correction = sum * (uint32_t)p->weights_zero;
        for (uint32_t m = 0; m < count; ++m) {
            const int32_t total =
                nk_wrap_add((int32_t)(acc[m] - correction), nk_stage_bias(stage, channel + m));
            to[channel + m] = nk_stage_output(stage, channel + m, total);
        }
    }
}

int32_t nk_fully_connected(uint32_t verb, nk_call *call) {
    const nk_fully_connected_params *p =
        (const nk_fully_connected_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *in = &call->operands[NK_FULLY_CONNECTED_INPUT],
                     *out = &call->operands[NK_FULLY_CONNECTED_OUTPUT];
    const nk_stage stage = nk_make_stage(call, &call->operands[NK_FULLY_CONNECTED_TABLE],
                                         &call->operands[NK_FULLY_CONNECTED_LUT], out->channels,
                                         p->output_zero, p->clamp_low, p->clamp_high);
    if (NK_SIMD(fully_connected, call, &stage)) return 0;
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const uint8_t *from = nk_row(in, image, y);
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x) {
                if (nk_stopped(call)) return 0;
                vector(call, p, &stage, from + (size_t)x * in->pixel, to + (size_t)x * out->pixel);
            }
        }
    }
    return 0;
}
