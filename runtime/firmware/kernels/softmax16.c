/* softmax16: softmax over the channels of each pixel of 16 bits. Exponentials and the reciprocal of
 * their sum come from two tables of 513 entries with linear interpolation (docs/numerics.md,
 * 16-bit activations). */
#include "nk_elementwise.h"

enum { ENTRIES = 513, TABLE_BYTES = 2 * ENTRIES };

/* Value of a table at a 16-bit position: 512 steps of 128. */
static int32_t look_up(const uint8_t *table, int32_t at) {
    const uint8_t *entry = table + 2 * (ptrdiff_t)(256 + (at >> 7));
    const int32_t base = nk_load16(entry), slope = (int16_t)(nk_load16(entry + 2) - base);
    return (int16_t)(base + ((slope * (at & 127) + 64) >> 7));
}

/* exp((x - largest) * beta * scale) in Q0.15. */
static int32_t exponential(const nk_softmax16_params *p, const uint8_t *table, int32_t x,
                           int32_t largest) {
    const int32_t scaled = nk_mbqm(x - largest, p->multiplier, p->shift);
    return look_up(table, nk_clamp(nk_wrap_add(scaled, 32767), INT16_MIN, INT16_MAX));
}

static int32_t leading_zeros(uint32_t value) {
    int32_t count = 0;
    for (uint32_t bit = 1u << 31; bit != 0 && !(value & bit); bit >>= 1) ++count;
    return count;
}

static void pixel_of(const nk_softmax16_params *p, const uint8_t *tables, uint32_t channels,
                     const uint8_t *from, uint8_t *to) {
    int32_t largest = INT16_MIN;
    for (size_t c = 0; c < channels; ++c) largest = nk_max(largest, nk_load16(from + 2 * c));
    /* A corrupt table may hold anything: the sum is kept positive, where shifts are defined. */
    int32_t sum = 0;
    for (size_t c = 0; c < channels; ++c)
        sum = nk_wrap_add(sum, exponential(p, tables, nk_load16(from + 2 * c), largest));
    sum = nk_max(sum, 2);
    const int32_t zeros = nk_max(leading_zeros((uint32_t)sum), 1); /* of a positive number */
    /* 1 + x with x in [0, 1) as 16 bits behind the leading one, moved to [-32768, 32767]. */
    const int32_t mantissa = (int32_t)((((int64_t)sum << (zeros - 1)) + (1 << 13)) >> 14);
    const int32_t at = nk_clamp(mantissa - (1 << 15) - (1 << 16), INT16_MIN, INT16_MAX);
    const int32_t scale = look_up(tables + TABLE_BYTES, at), right = 31 - zeros;
    for (size_t c = 0; c < channels; ++c) {
        const int32_t e = exponential(p, tables, nk_load16(from + 2 * c), largest);
        const int64_t share = ((int64_t)e * scale + ((int64_t)1 << (right - 1))) >> right;
        nk_store16(to + 2 * c, nk_clamp(nk_saturate(share), 0, INT16_MAX));
    }
}

int32_t nk_softmax16(uint32_t verb, nk_call *call) {
    const nk_softmax16_params *p = (const nk_softmax16_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_SOFTMAX16_INPUT];
    const nk_operand *out = &call->operands[NK_SOFTMAX16_OUTPUT];
    const nk_operand *table = &call->operands[NK_SOFTMAX16_TABLE];
    if (verb == NK_CHECK) {
        if (!nk_is_wide(in) || !nk_is_wide(out))
            return nk_refuse(call, "input and output must be of 16 bits");
        if (!nk_same_shape(in, out)) return nk_refuse(call, "input and output differ in shape");
        if (call->units < 1) return nk_refuse(call, "the packing has no units");
        if (!nk_scale_ok(p->multiplier, p->shift, 14))
            return nk_refuse(call, "multiplier or shift is out of range");
        if (!nk_inside(in) || !nk_inside(out) || !nk_inside_flat(table, 2 * TABLE_BYTES))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const uint8_t *from = nk_row(in, image, y);
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x) {
                if (nk_stopped(call)) return 0;
                pixel_of(p, table->data, out->channels, from + (size_t)x * in->pixel,
                         to + (size_t)x * out->pixel);
            }
        }
    }
    return 0;
}
