/* mul: product of two 8-bit tensors (docs/numerics.md, Add, sub and mul). */
#include "nk_elementwise.h"

static void mul_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_mul_params p = *(const nk_mul_params *)(const void *)call->params;
    const int32_t flip = nk_flip(&call->operands[NK_MUL_OUTPUT]);
    for (uint32_t i = 0; i < count; ++i) {
        int32_t product = (nk_value(*a, flip) - p.zero1) * (nk_value(*b, flip) - p.zero2);
        int32_t v = nk_mbqm(product, p.multiplier, p.shift);
        out[i] = (uint8_t)nk_clamp(nk_wrap_add(v, p.output_zero), p.clamp_low, p.clamp_high);
        a += step_a;
        b += step_b;
    }
}

int32_t nk_mul(uint32_t verb, nk_call *call) {
    const nk_mul_params *p = (const nk_mul_params *)(const void *)call->params;
    if (verb == NK_CHECK) {
        if (!nk_zero_ok(p->zero1) || !nk_zero_ok(p->zero2))
            return nk_refuse(call, "a zero point is out of range");
        if (!nk_scale_ok(p->multiplier, p->shift, 30))
            return nk_refuse(call, "multiplier or shift is out of range");
        if (!nk_output_ok(p->output_zero, p->clamp_low, p->clamp_high))
            return nk_refuse(call, "output zero point or clamp is out of range");
        return nk_check_walk2(call);
    }
    nk_walk2(call, mul_run);
    return 0;
}
