/* requantize: other scale, zero point, sign or clamp; QUANTIZE and the RELU family. */
#include "nk_simd.h"

static void rescale(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const nk_requantize_params p = *(const nk_requantize_params *)(const void *)call->params;
    const int32_t flip = nk_flip(&call->operands[NK_REQUANTIZE_INPUT]);
    for (uint32_t i = 0; i < count; ++i) {
        int32_t v = nk_mbqm(nk_value(in[i], flip) - p.input_zero, p.multiplier, p.shift);
        out[i] = (uint8_t)nk_clamp(nk_wrap_add(v, p.output_zero), p.clamp_low, p.clamp_high);
    }
}

int32_t nk_requantize(uint32_t verb, nk_call *call) {
    const nk_requantize_params *p = (const nk_requantize_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_REQUANTIZE_INPUT],
                     *out = &call->operands[NK_REQUANTIZE_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_is_byte(in) || !nk_is_byte(out))
            return nk_refuse(call, "input and output must be of 8 bits");
        if (!nk_same_shape(in, out)) return nk_refuse(call, "input and output differ in shape");
        if (!nk_zero_ok(p->input_zero) || !nk_scale_ok(p->multiplier, p->shift, 30))
            return nk_refuse(call, "zero point, multiplier or shift is out of range");
        if (!nk_output_ok(p->output_zero, p->clamp_low, p->clamp_high))
            return nk_refuse(call, "output zero point or clamp is out of range");
        if (!nk_inside(in) || !nk_inside(out))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    if (!NK_SIMD(requantize, call)) nk_walk1(call, in, out, rescale);
    return 0;
}
