/* add, 16 elements at a time, in the definition's own steps: differences of 9 bits times 2^20, each
 * rescaled, then their sum. */
#include "loops.h"

#if NK_HAS_NEON

#include "stage_neon.h"

#define LANES 16

/* One input on its way to the common scale. */
typedef struct {
    int16x8_t zero; /* minus the zero point, which is 128 lower for UINT8: its bytes are flipped */
    nk_lanes4 lanes;
    int kind;
} side;

/* The larger scale, whose rescaling is d * 2^19; a smaller one, which shifts right; any other. */
enum { LARGER, SMALLER, ANY };

static side side_of(int is_signed, int32_t zero, int32_t multiplier, int32_t shift) {
    side s;
    s.zero = vdupq_n_s16((int16_t)((is_signed ? 0 : 128) - zero));
    s.lanes = nk_lanes4_of(vdupq_n_s32(multiplier), vdupq_n_s32(shift));
    s.kind = multiplier == 1 << 30 && shift == 0 ? LARGER : shift < 0 ? SMALLER : ANY;
    return s;
}

typedef struct {
    side a, b;
    int subtract;
    int usual; /* one side at least of the larger scale, and a result that shifts right */
    nk_lanes4 lanes;
    nk_clamps clamps;
} sum;

/* Differences of 10 bits. */
NK_INLINE void differences(const side *s, const uint8_t *at, const int is_signed, int16x8_t d[2]) {
    const uint8x16_t bytes = vld1q_u8(at);
    const int8x16_t x = vreinterpretq_s8_u8(is_signed ? bytes : veorq_u8(bytes, vdupq_n_u8(0x80)));
    d[0] = vaddw_s8(s->zero, vget_low_s8(x));
    d[1] = vaddw_high_s8(s->zero, x);
}

/* Rescaled by the side's own multiplier: differences times 2^4, times 2^16 with the widening. */
NK_INLINE void rescaled(const side *s, const uint8_t *at, const int is_signed, const int plain,
                        int32x4_t d[4]) {
    int16x8_t x[2];
    differences(s, at, is_signed, x);
    x[0] = vshlq_n_s16(x[0], 4), x[1] = vshlq_n_s16(x[1], 4);
    d[0] = vshll_n_s16(vget_low_s16(x[0]), 16), d[1] = vshll_high_n_s16(x[0], 16);
    d[2] = vshll_n_s16(vget_low_s16(x[1]), 16), d[3] = vshll_high_n_s16(x[1], 16);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) d[i] = nk_rescale4(&s->lanes, d[i], plain);
}

/* What is added to the other side; the larger side's 2^19 is a 2^5 of its differences and 2^14. */
NK_INLINE void accumulated(const side *s, const uint8_t *at, const int is_signed, int16_t factor,
                           int32x4_t d[4]) {
    int16x8_t x[2];
    differences(s, at, is_signed, x);
    x[0] = vshlq_n_s16(x[0], 5), x[1] = vshlq_n_s16(x[1], 5);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
        d[2 * h] = vmlal_n_s16(d[2 * h], vget_low_s16(x[h]), factor);
        d[2 * h + 1] = vmlal_high_n_s16(d[2 * h + 1], x[h], factor);
    }
}

/* How the other side comes: by its own multiplier, by it and subtracted, or of the larger scale. */
enum { ADDED, TAKEN, EQUAL };

/* LANES elements, one input of the larger scale and times 2^14 or -2^14, in order of the sides. */
NK_INLINE void usual_block(const sum *s, const side *larger, const uint8_t *x, int16_t factor,
                           const side *other, const uint8_t *y, int16_t other_factor, uint8_t *out,
                           const int how, const int is_signed) {
    int32x4_t d[4];
    if (how == EQUAL) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) d[i] = vdupq_n_s32(0);
        accumulated(other, y, is_signed, other_factor, d);
    } else {
        rescaled(other, y, is_signed, 1, d);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4 && how == TAKEN; ++i) d[i] = vnegq_s32(d[i]);
    accumulated(larger, x, is_signed, factor, d);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) d[i] = nk_rescale4(&s->lanes, d[i], 1);
    vst1q_u8(out, nk_bytes16(&s->clamps, d[0], d[1], d[2], d[3], 1, is_signed));
}

/* `count` elements, a multiple of LANES; a step of 0 repeats an input's LANES elements. */
NK_INLINE void usual_run(const sum *shared, int swapped, const uint8_t *x, size_t step_x,
                         const uint8_t *y, size_t step_y, uint8_t *out, uint32_t count,
                         const int how, const int is_signed) {
    const sum s = *shared;
    const side larger = swapped ? s.b : s.a, other = swapped ? s.a : s.b;
    const int16_t second = s.subtract ? -(1 << 14) : 1 << 14, first = 1 << 14;
    const int16_t factor = swapped ? second : first, other_factor = swapped ? first : second;
    for (; count >= 2 * LANES; count -= 2 * LANES, out += 2 * LANES) {
        usual_block(&s, &larger, x, factor, &other, y, other_factor, out, how, is_signed);
        usual_block(&s, &larger, x + step_x, factor, &other, y + step_y, other_factor, out + LANES,
                    how, is_signed);
        x += 2 * step_x, y += 2 * step_y;
    }
    if (count) usual_block(&s, &larger, x, factor, &other, y, other_factor, out, how, is_signed);
}

/* Any two scales, in the definition's own steps. */
static void any_run(const sum *s, const uint8_t *a, size_t step_a, const uint8_t *b, size_t step_b,
                    uint8_t *out, uint32_t count, int is_signed) {
    for (; count; count -= LANES, a += step_a, b += step_b, out += LANES) {
        int32x4_t x[4], y[4];
        rescaled(&s->a, a, is_signed, 0, x);
        rescaled(&s->b, b, is_signed, 0, y);
        for (int i = 0; i < 4; ++i) {
            const int32x4_t both = s->subtract ? vsubq_s32(x[i], y[i]) : vaddq_s32(x[i], y[i]);
            x[i] = nk_rescale4(&s->lanes, both, 0);
        }
        vst1q_u8(out, nk_bytes16(&s->clamps, x[0], x[1], x[2], x[3], 0, is_signed));
    }
}

NK_INLINE void whole_blocks(const sum *s, const uint8_t *a, size_t step_a, const uint8_t *b,
                            size_t step_b, uint8_t *out, uint32_t count, const int is_signed) {
    if (!s->usual) any_run(s, a, step_a, b, step_b, out, count, is_signed);
    else if (s->a.kind == LARGER && s->b.kind == LARGER)
        usual_run(s, 0, a, step_a, b, step_b, out, count, EQUAL, is_signed);
    else if (s->b.kind == LARGER)
        usual_run(s, 1, b, step_b, a, step_a, out, count, ADDED, is_signed);
    else if (s->subtract) usual_run(s, 0, a, step_a, b, step_b, out, count, TAKEN, is_signed);
    else usual_run(s, 0, a, step_a, b, step_b, out, count, ADDED, is_signed);
}

static sum sum_of(const nk_call *call, int *fits) {
    const nk_add_params *p = (const nk_add_params *)(const void *)call->params;
    const int is_signed = call->operands[NK_ADD_OUTPUT].dtype == NEUTRON_DTYPE_INT8;
    sum s;
    s.a = side_of(is_signed, p->zero1, p->multiplier1, p->shift1);
    s.b = side_of(is_signed, p->zero2, p->multiplier2, p->shift2);
    s.subtract = p->subtract;
    s.usual = p->output_shift < 0 && s.a.kind != ANY && s.b.kind != ANY &&
              (s.a.kind == LARGER || s.b.kind == LARGER);
    s.lanes = nk_lanes4_of(vdupq_n_s32(p->output_multiplier), vdupq_n_s32(p->output_shift));
    *fits =
        nk_clamps_of(&s.clamps, is_signed, p->output_zero, p->clamp_low, p->clamp_high, s.usual);
    return s;
}

static void blocks(const sum *s, int is_signed, const uint8_t *a, size_t step_a, const uint8_t *b,
                   size_t step_b, uint8_t *out, uint32_t count) {
    if (is_signed) whole_blocks(s, a, step_a, b, step_b, out, count, 1);
    else whole_blocks(s, a, step_a, b, step_b, out, count, 0);
}

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    int fits;
    const int is_signed = call->operands[NK_ADD_OUTPUT].dtype == NEUTRON_DTYPE_INT8;
    const sum s = sum_of(call, &fits);
    const uint32_t whole = count / LANES * LANES, rest = count - whole;
    uint8_t left[LANES] = {0}, right[LANES] = {0}, result[LANES];
    if (!step_a) memset(left, *a, LANES), a = left;
    if (!step_b) memset(right, *b, LANES), b = right;
    const size_t by_a = (size_t)step_a * LANES, by_b = (size_t)step_b * LANES;
    if (whole) blocks(&s, is_signed, a, by_a, b, by_b, out, whole);
    if (!rest) return;
    if (step_a) memcpy(left, a + whole, rest);
    if (step_b) memcpy(right, b + whole, rest);
    blocks(&s, is_signed, left, 0, right, 0, result, LANES);
    memcpy(out + whole, result, rest);
}

int nk_add_neon(const nk_call *call) {
    int fits;
    sum_of(call, &fits);
    if (fits) nk_walk2(call, add_run);
    return fits;
}

#endif
