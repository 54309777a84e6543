/* add of rows that are runs, with the short form of mbqm. */
#include "loops.h"
#include "stage_dsp.h"

#if NK_HAS_DSP

/* The definition's unit: differences of at most 383 times 2^20 and their sums are below 2^30. */
enum { INPUT_UNIT = 1 << 20 };

/* What an addition does to an element. */
typedef struct {
    nk_short_scale left, right, sum;
    int32_t zero1, zero2, sign, zero, low, high, flip;
} adder;

static uint8_t one(const adder *a, uint8_t left, uint8_t right) {
    const int32_t x = nk_short_mbqm(&a->left, (nk_value(left, a->flip) - a->zero1) * INPUT_UNIT);
    const int32_t y = nk_short_mbqm(&a->right, (nk_value(right, a->flip) - a->zero2) * INPUT_UNIT);
    const int32_t sum = nk_short_mbqm(&a->sum, x + a->sign * y) + a->zero;
    return (uint8_t)nk_clamp(sum, a->low, a->high);
}

static adder adder_of(const nk_call *call) {
    const nk_add_params *p = (const nk_add_params *)(const void *)call->params;
    return (adder){.left = nk_make_short_scale(p->multiplier1, p->shift1),
                   .right = nk_make_short_scale(p->multiplier2, p->shift2),
                   .sum = nk_make_short_scale(p->output_multiplier, p->output_shift),
                   .zero1 = p->zero1,
                   .zero2 = p->zero2,
                   .sign = p->subtract ? -1 : 1,
                   .zero = p->output_zero,
                   .low = p->clamp_low,
                   .high = p->clamp_high,
                   .flip = nk_flip(&call->operands[NK_ADD_OUTPUT])};
}

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const adder how = adder_of(call);
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b) out[i] = one(&how, *a, *b);
}

int nk_dsp_add(const nk_call *call) {
    const nk_add_params *p = (const nk_add_params *)(const void *)call->params;
    if (p->shift1 > 0 || p->shift2 > 0 || p->output_shift > 0) return 0;
    nk_walk2(call, add_run);
    return 1;
}

#endif
