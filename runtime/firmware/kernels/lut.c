/* lut: every 8-bit unary function, as a table indexed by the stored byte. */
#include "nk_simd.h"

static void look_up(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const uint8_t *table = call->operands[NK_LUT_TABLE].data;
    for (uint32_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

int32_t nk_lut(uint32_t verb, nk_call *call) {
    const nk_lut_params *p = (const nk_lut_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_LUT_INPUT], *out = &call->operands[NK_LUT_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_is_byte(in) || !nk_is_byte(out))
            return nk_refuse(call, "input and output must be of 8 bits");
        if (!nk_same_shape(in, out)) return nk_refuse(call, "input and output differ in shape");
        if (p->entries != 256) return nk_refuse(call, "the table must have 256 entries");
        if (!nk_inside(in) || !nk_inside(out) ||
            !nk_inside_flat(&call->operands[NK_LUT_TABLE], 256))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    if (!NK_SIMD(lut, call)) nk_walk1(call, in, out, look_up);
    return 0;
}
