/* squared_difference: (a - b) squared, both brought to the common scale first (docs/numerics.md).
 */
#include "nk_elementwise.h"

/* Head room of the inputs: 9-bit differences times 2^7 keep the square of their difference within
 * 31 bits. */
#define INPUT_UNIT (1 << 7)

static void square_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                       uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_squared_difference_params p =
        *(const nk_squared_difference_params *)(const void *)call->params;
    const int32_t flip = nk_flip(&call->operands[NK_SQUARED_DIFFERENCE_OUTPUT]);
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b) {
        int32_t left =
            nk_mbqm((nk_value(*a, flip) - p.zero1) * INPUT_UNIT, p.multiplier1, p.shift1);
        int32_t right =
            nk_mbqm((nk_value(*b, flip) - p.zero2) * INPUT_UNIT, p.multiplier2, p.shift2);
        uint32_t difference = (uint32_t)(left - right);
        int32_t v =
            nk_mbqm((int32_t)(difference * difference), p.output_multiplier, p.output_shift);
        out[i] = (uint8_t)nk_clamp(nk_wrap_add(v, p.output_zero), p.clamp_low, p.clamp_high);
    }
}

int32_t nk_squared_difference(uint32_t verb, nk_call *call) {
    const nk_squared_difference_params *p =
        (const nk_squared_difference_params *)(const void *)call->params;
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
    nk_walk2(call, square_run);
    return 0;
}
