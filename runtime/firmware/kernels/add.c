/* add: sum or difference of two 8-bit tensors, each brought to the common scale first
 * (docs/numerics.md). */
#include "nk_simd.h"

/* Head room of the inputs before rescaling: 9-bit differences times 2^20 fill 29 bits, so the sum
 * cannot overflow. */
#define INPUT_UNIT (1 << 20)

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_add_params p = *(const nk_add_params *)(const void *)call->params;
    const int32_t flip = nk_flip(&call->operands[NK_ADD_OUTPUT]);
    for (uint32_t i = 0; i < count; ++i) {
        int32_t left =
            nk_mbqm((nk_value(*a, flip) - p.zero1) * INPUT_UNIT, p.multiplier1, p.shift1);
        int32_t right =
            nk_mbqm((nk_value(*b, flip) - p.zero2) * INPUT_UNIT, p.multiplier2, p.shift2);
        int32_t sum =
            nk_mbqm(p.subtract ? left - right : left + right, p.output_multiplier, p.output_shift);
        out[i] = (uint8_t)nk_clamp(nk_wrap_add(sum, p.output_zero), p.clamp_low, p.clamp_high);
        a += step_a;
        b += step_b;
    }
}

int32_t nk_add(uint32_t verb, nk_call *call) {
    const nk_add_params *p = (const nk_add_params *)(const void *)call->params;
    if (verb == NK_CHECK) {
        if (!nk_zero_ok(p->zero1) || !nk_zero_ok(p->zero2))
            return nk_refuse(call, "a zero point is out of range");
        if (!nk_scale_ok(p->multiplier1, p->shift1, 0) ||
            !nk_scale_ok(p->multiplier2, p->shift2, 0) ||
            !nk_scale_ok(p->output_multiplier, p->output_shift, 0))
            return nk_refuse(call, "a multiplier or shift is out of range");
        if (!nk_output_ok(p->output_zero, p->clamp_low, p->clamp_high))
            return nk_refuse(call, "output zero point or clamp is out of range");
        return nk_check_walk2(call);
    }
    if (!NK_SIMD(add, call)) nk_walk2(call, add_run);
    return 0;
}
