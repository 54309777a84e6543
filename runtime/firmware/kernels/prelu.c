/* prelu: negative inputs are multiplied by a slope, positive ones only change scale
 * (docs/numerics.md). LEAKY_RELU of 16 bits is this kernel with a slope of 1 or -1. */
#include "nk_elementwise.h"

static int32_t sloped(const nk_prelu_params *p, int32_t x, int32_t slope) {
    const int32_t v = x - p->input_zero;
    const int32_t scaled =
        v >= 0 ? nk_mbqm(v, p->multiplier, p->shift)
               : nk_mbqm(v * (slope - p->slope_zero), p->slope_multiplier, p->slope_shift);
    return nk_clamp(nk_wrap_add(scaled, p->output_zero), p->clamp_low, p->clamp_high);
}

static void prelu_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                      uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_prelu_params p = *(const nk_prelu_params *)(const void *)call->params;
    const int32_t flip = nk_flip(&call->operands[NK_PRELU_OUTPUT]);
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b)
        out[i] = (uint8_t)sloped(&p, nk_value(*a, flip), nk_value(*b, flip));
}

static void prelu_run16(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                        uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_prelu_params p = *(const nk_prelu_params *)(const void *)call->params;
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b, out += 2)
        nk_store16(out, sloped(&p, nk_load16(a), nk_load16(b)));
}

int32_t nk_prelu(uint32_t verb, nk_call *call) {
    const nk_prelu_params *p = (const nk_prelu_params *)(const void *)call->params;
    const nk_operand *out = &call->operands[NK_PRELU_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_zero_of(out, p->input_zero) || !nk_zero_of(out, p->slope_zero))
            return nk_refuse(call, "a zero point is out of range");
        if (!nk_scale_ok(p->multiplier, p->shift, 30) ||
            !nk_scale_ok(p->slope_multiplier, p->slope_shift, 30))
            return nk_refuse(call, "a multiplier or shift is out of range");
        if (!nk_output_of(out, p->output_zero, p->clamp_low, p->clamp_high))
            return nk_refuse(call, "output zero point or clamp is out of range");
        return nk_check_walk2_any(call);
    }
    nk_walk2(call, nk_is_wide(out) ? prelu_run16 : prelu_run);
    return 0;
}
