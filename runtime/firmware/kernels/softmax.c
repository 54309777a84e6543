/* softmax over the channels of each pixel, in the reference's fixed point: exponentials Q0.31 from
 * the call's table, their sum Q12.19, its reciprocal by three Newton steps. */
#include "nk_window.h"

/* 48/17 and 32/17 in Q2.29: the first guess of the reciprocal. */
#define GUESS 1515870810
#define SLOPE (-1010580540)
/* Fraction bits that an exponential loses when it is added to the sum: 12 integer bits hold 4096 of
 * them. */
#define SUM_SHIFT 12

static int32_t check(nk_call *call) {
    const nk_operand *in = &call->operands[NK_SOFTMAX_INPUT],
                     *out = &call->operands[NK_SOFTMAX_OUTPUT];
    if (!nk_is_byte(in) || !nk_is_byte(out))
        return nk_refuse(call, "input and output must be of 8 bits");
    if (!nk_same_shape(in, out)) return nk_refuse(call, "input and output differ in shape");
    if (call->units < 1) return nk_refuse(call, "the packing has no units");
    if (!nk_inside(in) || !nk_inside(out) ||
        !nk_inside_flat(&call->operands[NK_SOFTMAX_TABLE], 256 * 4) ||
        !nk_lut_ok(&call->operands[NK_SOFTMAX_LUT]))
        return nk_refuse(call, "an operand leaves its region");
    return 0;
}

static int32_t saturating_shl(int32_t value, int32_t bits) {
    return nk_saturate((int64_t)value * ((int64_t)1 << bits));
}

static int32_t leading_zeros(uint32_t value) {
    int32_t count = 0;
    for (uint32_t bit = 1u << 31; bit != 0 && !(value & bit); bit >>= 1) ++count;
    return count;
}

/* 1 / sum in Q0.31 of the sum's mantissa in [1, 2). */
static int32_t reciprocal(uint32_t mantissa) {
    const int32_t half = (int32_t)(mantissa >> 1);
    int32_t x = nk_wrap_add(GUESS, nk_srdhm(half, SLOPE));
    for (int step = 0; step < 3; ++step) {
        const int32_t error = (1 << 29) - nk_srdhm(half, x);
        x = nk_wrap_add(x, saturating_shl(nk_srdhm(x, error), 2));
    }
    return saturating_shl(x, 1);
}

static void pixel_of(const nk_stage *stage, int32_t flip, uint32_t channels, const uint8_t *from,
                     uint8_t *to) {
    int32_t largest = INT32_MIN;
    for (uint32_t c = 0; c < channels; ++c) largest = nk_max(largest, nk_value(from[c], flip));
    /* A corrupt table may hold anything; the sum is kept in the range the reciprocal is made for.
     */
    int64_t sum = 0;
    for (uint32_t c = 0; c < channels; ++c)
        sum += nk_rdp(nk_load32(stage->table + 4 * (size_t)(largest - nk_value(from[c], flip))),
                      SUM_SHIFT);
    const uint32_t bounded = sum < 1 ? 1u : sum > INT32_MAX ? (uint32_t)INT32_MAX : (uint32_t)sum;
    const int32_t zeros = leading_zeros(bounded);
    const int32_t scale = reciprocal(bounded << zeros);
    /* From 512 exponentials of 1 on, where the reference aborts, every probability rounds to 0. */
    const int32_t shift = SUM_SHIFT - zeros + 23;
    for (uint32_t c = 0; c < channels; ++c) {
        const int32_t e = nk_load32(stage->table + 4 * (size_t)(largest - nk_value(from[c], flip)));
        const int32_t share = shift > 31 ? 0 : nk_rdp(nk_srdhm(scale, e), nk_max(shift, 0));
        to[c] = nk_finish(stage, share);
    }
}

int32_t nk_softmax(uint32_t verb, nk_call *call) {
    const nk_softmax_params *p = (const nk_softmax_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call);
    const nk_operand *in = &call->operands[NK_SOFTMAX_INPUT],
                     *out = &call->operands[NK_SOFTMAX_OUTPUT];
    const nk_stage stage =
        nk_make_stage(call, &call->operands[NK_SOFTMAX_TABLE], &call->operands[NK_SOFTMAX_LUT], 0,
                      p->output_zero, p->clamp_low, p->clamp_high);
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const uint8_t *from = nk_row(in, image, y);
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x) {
                if (nk_stopped(call)) return 0;
                pixel_of(&stage, nk_flip(in), out->channels, from + (size_t)x * in->pixel,
                         to + (size_t)x * out->pixel);
            }
        }
    }
    return 0;
}
