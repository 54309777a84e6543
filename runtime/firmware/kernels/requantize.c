/* requantize: other scale, zero point, sign, width or clamp; QUANTIZE and the RELU family. */
#include "nk_simd.h"

static int32_t rescaled(const nk_requantize_params *p, int32_t value) {
    const int32_t v = nk_mbqm(value - p->input_zero, p->multiplier, p->shift);
    return nk_clamp(nk_wrap_add(v, p->output_zero), p->clamp_low, p->clamp_high);
}

static void rescale(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const nk_requantize_params p = *(const nk_requantize_params *)(const void *)call->params;
    const int32_t flip = nk_flip(&call->operands[NK_REQUANTIZE_INPUT]);
    for (uint32_t i = 0; i < count; ++i) out[i] = (uint8_t)rescaled(&p, nk_value(in[i], flip));
}

/* From or to elements of 16 bits. */
static void rescale_any(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const nk_requantize_params p = *(const nk_requantize_params *)(const void *)call->params;
    const nk_operand *x = &call->operands[NK_REQUANTIZE_INPUT];
    const nk_operand *y = &call->operands[NK_REQUANTIZE_OUTPUT];
    for (uint32_t i = 0; i < count; ++i, in += nk_item(x), out += nk_item(y))
        nk_write(y, out, rescaled(&p, nk_read(x, in)));
}

static int32_t check(nk_call *call, const nk_requantize_params *p, const nk_operand *in,
                     const nk_operand *out) {
    if (!nk_is_byte(in) && !nk_is_wide(in)) return nk_refuse(call, "the input is of another width");
    if (!nk_is_byte(out) && !nk_is_wide(out))
        return nk_refuse(call, "the output is of another width");
    if (!nk_same_shape(in, out)) return nk_refuse(call, "input and output differ in shape");
    if (!nk_zero_of(in, p->input_zero) || !nk_scale_ok(p->multiplier, p->shift, 30))
        return nk_refuse(call, "zero point, multiplier or shift is out of range");
    if (!nk_output_of(out, p->output_zero, p->clamp_low, p->clamp_high))
        return nk_refuse(call, "output zero point or clamp is out of range");
    if (!nk_inside(in) || !nk_inside(out)) return nk_refuse(call, "an operand leaves its region");
    return 0;
}

int32_t nk_requantize(uint32_t verb, nk_call *call) {
    const nk_requantize_params *p = (const nk_requantize_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_REQUANTIZE_INPUT];
    const nk_operand *out = &call->operands[NK_REQUANTIZE_OUTPUT];
    if (verb == NK_CHECK) return check(call, p, in, out);
    if (nk_is_wide(in) || nk_is_wide(out)) {
        if (!NK_SIMD(requantize16, call)) nk_walk1(call, in, out, rescale_any);
    } else if (!NK_SIMD(requantize, call)) {
        nk_walk1(call, in, out, rescale);
    }
    return 0;
}
