/* mul: product of two tensors of 8 or 16 bits (docs/numerics.md, Add, sub and mul). */
#include "nk_elementwise.h"

static int32_t product(const nk_mul_params *p, int32_t a, int32_t b) {
    const int32_t v = nk_mbqm((a - p->zero1) * (b - p->zero2), p->multiplier, p->shift);
    return nk_clamp(nk_wrap_add(v, p->output_zero), p->clamp_low, p->clamp_high);
}

static void mul_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_mul_params p = *(const nk_mul_params *)(const void *)call->params;
    const int32_t flip = nk_flip(&call->operands[NK_MUL_OUTPUT]);
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b)
        out[i] = (uint8_t)product(&p, nk_value(*a, flip), nk_value(*b, flip));
}

static void mul_run16(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                      uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_mul_params p = *(const nk_mul_params *)(const void *)call->params;
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b, out += 2)
        nk_store16(out, product(&p, nk_load16(a), nk_load16(b)));
}

int32_t nk_mul(uint32_t verb, nk_call *call) {
    const nk_mul_params *p = (const nk_mul_params *)(const void *)call->params;
    const nk_operand *out = &call->operands[NK_MUL_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_zero_of(out, p->zero1) || !nk_zero_of(out, p->zero2))
            return nk_refuse(call, "a zero point is out of range");
        if (!nk_scale_ok(p->multiplier, p->shift, 30))
            return nk_refuse(call, "multiplier or shift is out of range");
        if (!nk_output_of(out, p->output_zero, p->clamp_low, p->clamp_high))
            return nk_refuse(call, "output zero point or clamp is out of range");
        return nk_check_walk2_any(call);
    }
    nk_walk2(call, nk_is_wide(out) ? mul_run16 : mul_run);
    return 0;
}
