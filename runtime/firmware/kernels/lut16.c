/* lut16: LOGISTIC and TANH of 16 bits, by linear interpolation in a table of the logistic function
 * at multiples of 1/24 (docs/numerics.md, 16-bit activations). */
#include "nk_simd.h"

enum { ENTRIES = 256, LAST = ENTRIES - 1 };

/* The table at `at` + rest / 2^bits, with `bits` fraction bits, 0.16 otherwise. */
static int32_t interpolated(const uint8_t *table, uint32_t at, uint32_t rest, int32_t bits,
                            int32_t most) {
    if (at >= LAST) return most;
    const int32_t low = nk_load16(table + 2 * (size_t)at) & 0xFFFF;
    const int32_t high = nk_load16(table + 2 * (size_t)at + 2) & 0xFFFF;
    return low * (1 << bits) + (int32_t)rest * (high - low);
}

static int32_t logistic(const uint8_t *table, int32_t x) {
    const uint32_t size = x < 0 ? 0u - (uint32_t)x : (uint32_t)x;
    const int32_t y = interpolated(table, size >> 9, size & 511, 9, 0x7FFF << 10);
    return (x >= 0 ? y + (1 << 9) : (1 << 25) - y + (1 << 9) - 1) >> 10;
}

/* 2 * logistic(2x) - 1 */
static int32_t tangent(const uint8_t *table, int32_t x) {
    const uint32_t size = x < 0 ? 0u - (uint32_t)x : (uint32_t)x;
    const int32_t y = interpolated(table, size >> 8, size & 255, 8, 0xFFFF << 8);
    return (x >= 0 ? y - (1 << 23) + (1 << 7) : -y + (1 << 23) + (1 << 7) - 1) >> 8;
}

static void look_up(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const nk_lut16_params p = *(const nk_lut16_params *)(const void *)call->params;
    const uint8_t *table = call->operands[NK_LUT16_TABLE].data;
    const int32_t half = p.shift > 0 ? 1 << (p.shift - 1) : 0;
    for (uint32_t i = 0; i < count; ++i, in += 2, out += 2) {
        const int32_t x = nk_wrap_add(nk_load16(in) * p.multiplier, half) >> p.shift;
        nk_store16(out, p.tangent ? tangent(table, x) : logistic(table, x));
    }
}

int32_t nk_lut16(uint32_t verb, nk_call *call) {
    const nk_lut16_params *p = (const nk_lut16_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_LUT16_INPUT], *out = &call->operands[NK_LUT16_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_is_wide(in) || !nk_is_wide(out))
            return nk_refuse(call, "input and output must be of 16 bits");
        if (!nk_same_shape(in, out)) return nk_refuse(call, "input and output differ in shape");
        if (p->multiplier < 0 || p->multiplier > UINT16_MAX || p->shift < 0 || p->shift > 31 ||
            (p->tangent & ~1))
            return nk_refuse(call, "multiplier, shift or function is out of range");
        if (!nk_inside(in) || !nk_inside(out) ||
            !nk_inside_flat(&call->operands[NK_LUT16_TABLE], 2 * ENTRIES))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    if (!NK_SIMD(lut16, call)) nk_walk1(call, in, out, look_up);
    return 0;
}
