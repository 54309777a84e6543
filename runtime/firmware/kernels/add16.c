/* add16: sum or difference of two 16-bit tensors (docs/numerics.md, 16-bit activations). */
#include "nk_simd.h"

/* Head room of the inputs before rescaling: 16 bits times 2^15, and inputs lose a bit or more in
 * rescaling, so the sum cannot overflow. */
#define INPUT_UNIT (1 << 15)

static int32_t general(const nk_add16_params *p, int32_t a, int32_t b) {
    const int32_t left = nk_mbqm(a * INPUT_UNIT, p->multiplier1, p->shift1);
    const int32_t right = nk_mbqm(b * INPUT_UNIT, p->multiplier2, p->shift2);
    const int32_t sum = p->subtract ? left - right : left + right;
    return nk_mbqm(sum, p->output_multiplier, p->output_shift);
}

/* Scales that are powers of two: one input is shifted to the other's, which is the output's. */
static int32_t shifted(const nk_add16_params *p, int32_t a, int32_t b) {
    const int32_t left = nk_rdp(a, -p->shift1), right = nk_rdp(b, -p->shift2);
    return p->subtract ? left - right : left + right;
}

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_add16_params p = *(const nk_add16_params *)(const void *)call->params;
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b, out += 2) {
        const int32_t x = nk_load16(a), y = nk_load16(b);
        const int32_t sum = p.shifts_only ? shifted(&p, x, y) : general(&p, x, y);
        nk_store16(out, nk_clamp(sum, p.clamp_low, p.clamp_high));
    }
}

int32_t nk_add16(uint32_t verb, nk_call *call) {
    const nk_add16_params *p = (const nk_add16_params *)(const void *)call->params;
    if (verb == NK_CHECK) {
        if (!nk_is_wide(&call->operands[NK_ADD16_OUTPUT]))
            return nk_refuse(call, "inputs and output must be of 16 bits");
        if (!nk_scale_ok(p->multiplier1, p->shift1, 0) ||
            !nk_scale_ok(p->multiplier2, p->shift2, 0) ||
            !nk_scale_ok(p->output_multiplier, p->output_shift, 0))
            return nk_refuse(call, "a multiplier or shift is out of range");
        if (!nk_clamp16_ok(p->clamp_low, p->clamp_high))
            return nk_refuse(call, "the clamp is out of range");
        return nk_check_walk2_any(call);
    }
    if (!NK_SIMD(add16, call)) nk_walk2(call, add_run);
    return 0;
}
