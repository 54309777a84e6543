/* fully_connected16: every pixel of the 16-bit input is one vector. */
#include "nk_simd.h"

static int32_t check(nk_call *call, const nk_fully_connected16_params *p) {
    const nk_operand *in = &call->operands[NK_FULLY_CONNECTED16_INPUT];
    const nk_operand *out = &call->operands[NK_FULLY_CONNECTED16_OUTPUT];
    const int32_t common = nk_check_wide(call, in, &call->operands[NK_FULLY_CONNECTED16_TABLE], out,
                                         p->narrow, p->clamp_low, p->clamp_high);
    if (common) return common;
    if (in->height != out->height || in->width != out->width)
        return nk_refuse(call, "input and output differ in vectors");
    if (!nk_inside_flat(&call->operands[NK_FULLY_CONNECTED16_WEIGHTS],
                        nk_dense_bytes(call, out->channels, 1, in->channels)))
        return nk_refuse(call, "the weights leave their region");
    return 0;
}

static void vector(const nk_call *call, const nk_wide_stage *stage, const uint8_t *from,
                   uint8_t *to) {
    const nk_operand *in = &call->operands[NK_FULLY_CONNECTED16_INPUT];
    const nk_operand *out = &call->operands[NK_FULLY_CONNECTED16_OUTPUT];
    const size_t block_bytes = (size_t)nk_dense_bytes(call, 1, 1, in->channels);
    const int8_t *weights = (const int8_t *)call->operands[NK_FULLY_CONNECTED16_WEIGHTS].data;
    for (uint32_t channel = 0; channel < out->channels;
         channel += call->units, weights += block_bytes) {
        const uint32_t left = out->channels - channel;
        const uint32_t count = left < call->units ? left : call->units;
        int64_t acc[NK_MAX_UNITS];
        nk_wide_clear(acc, call->units);
        nk_wide_dot(call, from, in->channels, weights, acc);
        for (uint32_t m = 0; m < count; ++m)
            nk_store16(to + 2 * (size_t)(channel + m),
                       nk_wide_stage_output(stage, channel + m, acc[m]));
    }
}

int32_t nk_fully_connected16(uint32_t verb, nk_call *call) {
    const nk_fully_connected16_params *p =
        (const nk_fully_connected16_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *in = &call->operands[NK_FULLY_CONNECTED16_INPUT];
    const nk_operand *out = &call->operands[NK_FULLY_CONNECTED16_OUTPUT];
    const nk_wide_stage stage =
        nk_make_wide_stage(call, &call->operands[NK_FULLY_CONNECTED16_TABLE], out->channels,
                           p->narrow, p->clamp_low, p->clamp_high);
    if (NK_SIMD(fully_connected16, call, &stage)) return 0;
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const uint8_t *from = nk_row(in, image, y);
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x) {
                if (nk_stopped(call)) return 0;
                vector(call, &stage, from + (size_t)x * in->pixel, to + (size_t)x * out->pixel);
            }
        }
    }
    return 0;
}
