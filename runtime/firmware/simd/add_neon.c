/* add, 16 elements at a time, in the definition's own steps: differences of 9 bits times 2^20, each
 * rescaled, then their sum. */
#include "loops.h"

#if NK_HAS_NEON

#include "stage_neon.h"

#define LANES 16

/* One input on its way to the common scale. */
typedef struct {
    int16x8_t zero; /* minus the zero point, which is 128 lower for UINT8: its bytes are flipped */
    uint8x16_t toggle;
    nk_lanes4 lanes;
    int kind;
} side;

/* The larger scale, whose rescaling is d * 2^19; a smaller one, which shifts right; any other. */
enum { LARGER, SMALLER, ANY };

static side side_of(int is_signed, int32_t zero, int32_t multiplier, int32_t shift) {
    side s;
    s.zero = vdupq_n_s16((int16_t)((is_signed ? 0 : 128) - zero));
    s.toggle = vdupq_n_u8(is_signed ? 0 : 0x80);
    s.lanes = nk_lanes4_of(vdupq_n_s32(multiplier), vdupq_n_s32(shift));
    s.kind = multiplier == 1 << 30 && shift == 0 ? LARGER : shift < 0 ? SMALLER : ANY;
    return s;
}

/* Differences of 9 bits, times 8 or 16 while they are 16 bits wide and times 2^16 with the
 * widening: the larger side's result, or what the others' multiplier wants. */
NK_INLINE void scaled(const side *s, const uint8_t *at, uint32_t step, const int kind,
                      int32x4_t d[4]) {
    const uint8x16_t bytes = step ? vld1q_u8(at) : vld1q_dup_u8(at);
    const int8x16_t x = vreinterpretq_s8_u8(veorq_u8(bytes, s->toggle));
    int16x8_t low = vaddw_s8(s->zero, vget_low_s8(x)), high = vaddw_high_s8(s->zero, x);
    low = kind == LARGER ? vshlq_n_s16(low, 3) : vshlq_n_s16(low, 4);
    high = kind == LARGER ? vshlq_n_s16(high, 3) : vshlq_n_s16(high, 4);
    d[0] = vshll_n_s16(vget_low_s16(low), 16), d[1] = vshll_high_n_s16(low, 16);
    d[2] = vshll_n_s16(vget_low_s16(high), 16), d[3] = vshll_high_n_s16(high, 16);
    if (kind == LARGER) return;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) d[i] = nk_rescale4(&s->lanes, d[i], kind == SMALLER);
}

typedef struct {
    side a, b;
    int subtract;
    int usual; /* one side at least of the larger scale, and a result that shifts right */
    nk_lanes4 lanes;
    nk_clamps clamps;
} sum;

/* LANES elements; a step of 0 repeats the input's one element. */
NK_INLINE void block(const sum *s, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                     uint32_t step_b, uint8_t *out, const int kind_a, const int kind_b,
                     const int plain) {
    int32x4_t x[4], y[4];
    scaled(&s->a, a, step_a, kind_a, x);
    scaled(&s->b, b, step_b, kind_b, y);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
        x[i] = nk_rescale4(&s->lanes, s->subtract ? vsubq_s32(x[i], y[i]) : vaddq_s32(x[i], y[i]),
                           plain);
    vst1q_u8(out, nk_bytes16(&s->clamps, x[0], x[1], x[2], x[3], plain));
}

NK_INLINE void run(const sum *shared, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                   uint32_t step_b, uint8_t *out, uint32_t count, const int kind_a,
                   const int kind_b, const int plain) {
    const sum s = *shared;
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        block(&s, a + i * step_a, step_a, b + i * step_b, step_b, out + i, kind_a, kind_b, plain);
    if (i == count) return;
    uint8_t left[LANES] = {0}, right[LANES] = {0}, result[LANES];
    memcpy(left, a + i * step_a, step_a ? count - i : 1);
    memcpy(right, b + i * step_b, step_b ? count - i : 1);
    block(&s, left, step_a, right, step_b, result, kind_a, kind_b, plain);
    memcpy(out + i, result, count - i);
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

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    int fits;
    const sum s = sum_of(call, &fits);
    if (!s.usual) run(&s, a, step_a, b, step_b, out, count, ANY, ANY, 0);
    else if (s.a.kind == SMALLER) run(&s, a, step_a, b, step_b, out, count, SMALLER, LARGER, 1);
    else if (s.b.kind == SMALLER) run(&s, a, step_a, b, step_b, out, count, LARGER, SMALLER, 1);
    else run(&s, a, step_a, b, step_b, out, count, LARGER, LARGER, 1);
}

int nk_add_neon(const nk_call *call) {
    int fits;
    sum_of(call, &fits);
    if (fits) nk_walk2(call, add_run);
    return fits;
}

#endif
