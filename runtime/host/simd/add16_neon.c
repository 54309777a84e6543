/* add16, 8 elements at a time, in the definition's own steps. */
#include "loops.h"

#if NK_HAS_NEON

#include "runs.h"
#include "stage_neon.h"

#define LANES 8

typedef struct {
    nk_lanes4 lanes;
    int way; /* NK_HALVED, NK_SCALED or NK_SHIFTED */
} side;

typedef struct {
    side a, b;
    nk_lanes4 out;
    int16x8_t low, high;
    int shifts_only, subtract;
} constants;

static side side_of(const nk_add16_params *p, int32_t multiplier, int32_t shift) {
    side s;
    s.lanes = nk_lanes4_of(vdupq_n_s32(multiplier), vdupq_n_s32(shift));
    s.way = nk_add16_way(p, multiplier, shift);
    return s;
}

/* nk_rdp: halves away from zero, as in nk_rescale4. */
NK_INLINE int32x4_t shifted(const nk_lanes4 *k, int32x4_t x) {
    return vrshlq_s32(vsraq_n_s32(x, vandq_s32(x, k->sign), 31), k->right);
}

NK_INLINE void common(const side *s, const uint8_t *at, int32x4_t d[2]) {
    const int16x8_t x = vreinterpretq_s16_u8(vld1q_u8(at));
    if (s->way == NK_HALVED) {
        d[0] = vshll_n_s16(vget_low_s16(x), 14), d[1] = vshll_high_n_s16(x, 14);
    } else if (s->way == NK_SCALED) {
        d[0] = nk_rescale4(&s->lanes, vshll_n_s16(vget_low_s16(x), 15), 0);
        d[1] = nk_rescale4(&s->lanes, vshll_high_n_s16(x, 15), 0);
    } else {
        d[0] = shifted(&s->lanes, vmovl_s16(vget_low_s16(x)));
        d[1] = shifted(&s->lanes, vmovl_high_s16(x));
    }
}

NK_INLINE void block(const void *constants_of_run, const uint8_t *a, const uint8_t *b,
                     uint8_t *out) {
    const constants *k = constants_of_run;
    int32x4_t x[2], y[2];
    common(&k->a, a, x);
    common(&k->b, b, y);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
        x[i] = k->subtract ? vsubq_s32(x[i], y[i]) : vaddq_s32(x[i], y[i]);
        if (!k->shifts_only) x[i] = nk_rescale4(&k->out, x[i], 0);
    }
    const int16x8_t words = vqmovn_high_s32(vqmovn_s32(x[0]), x[1]);
    vst1q_u8(out, vreinterpretq_u8_s16(vminq_s16(vmaxq_s16(words, k->low), k->high)));
}

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const constants k = *(const constants *)call->context;
    nk_run_blocks2(block, &k, LANES, a, step_a, b, step_b, out, count);
}

int nk_add16_neon(const nk_call *call) {
    const nk_add16_params *p = (const nk_add16_params *)(const void *)call->params;
    constants k;
    k.a = side_of(p, p->multiplier1, p->shift1);
    k.b = side_of(p, p->multiplier2, p->shift2);
    k.out = nk_lanes4_of(vdupq_n_s32(p->output_multiplier), vdupq_n_s32(p->output_shift));
    k.low = vdupq_n_s16((int16_t)p->clamp_low), k.high = vdupq_n_s16((int16_t)p->clamp_high);
    k.shifts_only = p->shifts_only != 0, k.subtract = p->subtract != 0;
    nk_call own = *call;
    own.context = &k;
    nk_walk2(&own, add_run);
    return 1;
}

#endif
