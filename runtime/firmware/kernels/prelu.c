/* prelu: negative inputs are multiplied by a slope, positive ones only change scale
 * (docs/numerics.md). */
#include "nk_elementwise.h"

static void prelu_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                      uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_prelu_params p = *(const nk_prelu_params *)(const void *)call->params;
    const int32_t flip = nk_flip(&call->operands[NK_PRELU_OUTPUT]);
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b) {
        int32_t v = nk_value(*a, flip) - p.input_zero;
        if (v >= 0) v = nk_mbqm(v, p.multiplier, p.shift);
        else
            v = nk_mbqm(v * (nk_value(*b, flip) - p.slope_zero), p.slope_multiplier, p.slope_shift);
        out[i] = (uint8_t)nk_clamp(nk_wrap_add(v, p.output_zero), p.clamp_low, p.clamp_high);
    }
}

int32_t nk_prelu(uint32_t verb, nk_call *call) {
    const nk_prelu_params *p = (const nk_prelu_params *)(const void *)call->params;
    if (verb == NK_CHECK) {
        if (!nk_zero_ok(p->input_zero) || !nk_zero_ok(p->slope_zero))
            return nk_refuse(call, "a zero point is out of range");
        if (!nk_scale_ok(p->multiplier, p->shift, 30) ||
            !nk_scale_ok(p->slope_multiplier, p->slope_shift, 30))
            return nk_refuse(call, "a multiplier or shift is out of range");
        if (!nk_output_ok(p->output_zero, p->clamp_low, p->clamp_high))
            return nk_refuse(call, "output zero point or clamp is out of range");
        return nk_check_walk2(call);
    }
    nk_walk2(call, prelu_run);
    return 0;
}
