/* add of rows that are runs, four elements at a time. */
#include "loops.h"
#include "stage_helium.h"

#if NK_HAS_HELIUM

enum { UNIT_BITS = 20 }; /* the definition's unit */

/* What becomes of an input. */
typedef struct {
    nk_four_scales scales;
    int32_t zero, flip;
    uint32_t step; /* 0: one element for all */
} input;

static inline int32x4_t load(const input *in, const uint8_t *from, mve_pred16_t left) {
    int32x4_t value;
    if (!in->step) value = vdupq_n_s32(nk_value(*from, in->flip));
    else if (in->flip) value = vldrbq_z_s32((const int8_t *)from, left);
    else value = vreinterpretq_s32_u32(vldrbq_z_u32(from, left));
    value = vshlq_n_s32(vsubq_n_s32(value, in->zero), UNIT_BITS);
    return nk_four_mbqm(&in->scales, value);
}

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const nk_add_params *p = (const nk_add_params *)(const void *)call->params;
    const int32_t flip = nk_flip(&call->operands[NK_ADD_OUTPUT]);
    const input left = {nk_same_four_scales(p->multiplier1, p->shift1), p->zero1, flip, step_a},
                right = {nk_same_four_scales(p->multiplier2, p->shift2), p->zero2, flip, step_b};
    const nk_four_scales scales = nk_same_four_scales(p->output_multiplier, p->output_shift);
    for (; count; a += 4 * step_a, b += 4 * step_b, out += 4) {
        const mve_pred16_t here = vctp32q(count);
        const int32x4_t x = load(&left, a, here), y = load(&right, b, here);
        const int32x4_t sum = p->subtract ? vsubq_s32(x, y) : vaddq_s32(x, y);
        const int32x4_t value = vaddq_n_s32(nk_four_mbqm(&scales, sum), p->output_zero);
        vstrbq_p_s32((int8_t *)out, nk_four_clamped(value, p->clamp_low, p->clamp_high), here);
        if (count <= 4) break;
        count -= 4;
    }
}

int nk_helium_add(const nk_call *call) {
    nk_walk2(call, add_run);
    return 1;
}

#endif
