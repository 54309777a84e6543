/* add, 16 elements at a time, in the definition's own steps: differences of 9 bits times 2^20, each
 * rescaled, then their sum. */
#include "loops.h"

#if NK_HAS_NEON

#include "stage_neon.h"

#define LANES 16

/* One input on its way to the common scale. */
typedef struct {
    int16x8_t zero; /* 128 lower for UINT8, whose bytes are flipped to signed ones */
    uint8x16_t toggle;
    nk_lanes4 lanes;
    int plain; /* the larger scale, whose rescaling is d * 2^19 */
} side;

static side side_of(int is_signed, int32_t zero, int32_t multiplier, int32_t shift) {
    side s;
    s.zero = vdupq_n_s16((int16_t)(zero - (is_signed ? 0 : 128)));
    s.toggle = vdupq_n_u8(is_signed ? 0 : 0x80);
    s.lanes = nk_lanes4_of(vdupq_n_s32(multiplier), vdupq_n_s32(shift));
    s.plain = multiplier == 1 << 30 && shift == 0;
    return s;
}

/* Four differences in the upper halves of words. */
NK_INLINE int32x4_t scaled(const side *s, int32x4_t d, const int plain) {
    return plain ? vshlq_n_s32(d, 3) : nk_rescale4(&s->lanes, vshlq_n_s32(d, 4), 0);
}

NK_INLINE void widen(const side *s, const uint8_t *at, uint32_t step, int32x4_t d[4]) {
    const uint8x16_t bytes = step ? vld1q_u8(at) : vld1q_dup_u8(at);
    const int8x16_t x = vreinterpretq_s8_u8(veorq_u8(bytes, s->toggle));
    const int16x8_t low = vsubq_s16(vmovl_s8(vget_low_s8(x)), s->zero);
    const int16x8_t high = vsubq_s16(vmovl_high_s8(x), s->zero);
    d[0] = vshll_n_s16(vget_low_s16(low), 16), d[1] = vshll_high_n_s16(low, 16);
    d[2] = vshll_n_s16(vget_low_s16(high), 16), d[3] = vshll_high_n_s16(high, 16);
}

typedef struct {
    side a, b;
    int subtract, plain;
    nk_lanes4 lanes;
    nk_clamps clamps;
} sum;

/* LANES elements; a step of 0 repeats the input's one element. */
NK_INLINE void block(const sum *s, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                     uint32_t step_b, uint8_t *out, const int plain_a, const int plain_b,
                     const int plain) {
    int32x4_t x[4], y[4], v[4];
    widen(&s->a, a, step_a, x);
    widen(&s->b, b, step_b, y);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const int32x4_t left = scaled(&s->a, x[i], plain_a), right = scaled(&s->b, y[i], plain_b);
        v[i] = nk_rescale4(&s->lanes, s->subtract ? vsubq_s32(left, right) : vaddq_s32(left, right),
                           plain);
    }
    vst1q_u8(out, nk_bytes16(&s->clamps, v[0], v[1], v[2], v[3], plain));
}

NK_INLINE void run(const sum *shared, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                   uint32_t step_b, uint8_t *out, uint32_t count, const int plain_a,
                   const int plain_b, const int plain) {
    const sum s = *shared;
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        block(&s, a + i * step_a, step_a, b + i * step_b, step_b, out + i, plain_a, plain_b, plain);
    if (i == count) return;
    uint8_t left[LANES] = {0}, right[LANES] = {0}, result[LANES];
    memcpy(left, a + i * step_a, step_a ? count - i : 1);
    memcpy(right, b + i * step_b, step_b ? count - i : 1);
    block(&s, left, step_a, right, step_b, result, plain_a, plain_b, plain);
    memcpy(out + i, result, count - i);
}

static sum sum_of(const nk_call *call, int *fits) {
    const nk_add_params *p = (const nk_add_params *)(const void *)call->params;
    const int is_signed = call->operands[NK_ADD_OUTPUT].dtype == NEUTRON_DTYPE_INT8;
    sum s;
    s.a = side_of(is_signed, p->zero1, p->multiplier1, p->shift1);
    s.b = side_of(is_signed, p->zero2, p->multiplier2, p->shift2);
    s.subtract = p->subtract;
    s.plain = p->output_shift < 0;
    s.lanes = nk_lanes4_of(vdupq_n_s32(p->output_multiplier), vdupq_n_s32(p->output_shift));
    *fits =
        nk_clamps_of(&s.clamps, is_signed, p->output_zero, p->clamp_low, p->clamp_high, s.plain);
    return s;
}

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    int fits;
    const sum s = sum_of(call, &fits);
    if (!s.plain) run(&s, a, step_a, b, step_b, out, count, 0, 0, 0);
    else if (s.a.plain) run(&s, a, step_a, b, step_b, out, count, 1, 0, 1);
    else if (s.b.plain) run(&s, a, step_a, b, step_b, out, count, 0, 1, 1);
    else run(&s, a, step_a, b, step_b, out, count, 0, 0, 1);
}

int nk_add_neon(const nk_call *call) {
    int fits;
    sum_of(call, &fits);
    if (fits) nk_walk2(call, add_run);
    return fits;
}

#endif
