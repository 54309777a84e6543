/* How four accumulators become four bytes, for any multipliers and shifts. */
#ifndef NK_STAGE_HELIUM_H
#define NK_STAGE_HELIUM_H

#include "helium.h"
#include "nk_window.h"

#if NK_HAS_HELIUM

/* Of four numbers; shifts to the right are negative. */
typedef struct {
    int32x4_t multiplier, left, right;
} nk_four_scales;

static inline nk_four_scales nk_make_four_scales(int32x4_t multiplier, int32x4_t shift) {
    const int32x4_t none = vdupq_n_s32(0);
    return (nk_four_scales){multiplier, vmaxq_s32(vminq_s32(shift, vdupq_n_s32(30)), none),
                            vminq_s32(vmaxq_s32(shift, vdupq_n_s32(-31)), none)};
}

static inline nk_four_scales nk_same_four_scales(int32_t multiplier, int32_t shift) {
    return nk_make_four_scales(vdupq_n_s32(multiplier), vdupq_n_s32(shift));
}

/* nk_mbqm. VQRDMULH is srdhm, with its saturation. VRSHL rounds halves up: of a negative number
 * that is shifted, one less is taken, so that they go away from zero. */
static inline int32x4_t nk_four_mbqm(const nk_four_scales *s, int32x4_t value) {
    const int32x4_t high = vqrdmulhq_s32(vshlq_s32(value, s->left), s->multiplier);
    const int32x4_t less = vshrq_n_s32(vandq_s32(high, s->right), 31);
    return vrshlq_s32(vaddq_s32(high, less), s->right);
}

/* nk_exact31 for shifts from NK_HIGH_SHIFT on: the low half of the product and its carry do not
 * reach the result. */
#define NK_HIGH_SHIFT 33

static inline int32x4_t nk_four_exact31(int32x4_t multiplier, int32x4_t shift, int32x4_t value) {
    const int32x4_t right = vsubq_s32(vdupq_n_s32(32), vminq_s32(shift, vdupq_n_s32(62)));
    return vrshlq_s32(vmulhq_s32(value, multiplier), right);
}

/* nk_mbqm for shifts of at most 0. */
static inline int32x4_t nk_four_right(int32x4_t multiplier, int32x4_t shift, int32x4_t value) {
    const int32x4_t high = vqrdmulhq_s32(value, multiplier);
    const int32x4_t less = vshrq_n_s32(vandq_s32(high, shift), 31);
    return vrshlq_s32(vaddq_s32(high, less), shift);
}

static inline int32x4_t nk_four_clamped(int32x4_t value, int32_t low, int32_t high) {
    return vminq_s32(vmaxq_s32(value, vdupq_n_s32(low)), vdupq_n_s32(high));
}

/* stage_helium.c: whether outputs of INT8 or UINT8 become what nk_four_right() says, without a
 * table: no shift of `channels` is to the left, nor further to the right than VRSHL takes. */
bool nk_stage_is_right(const nk_stage *stage, uint32_t channels);

/* Outputs of fours of channels of two pixels. Sums are those of four channels for both pixels; `at`
 * is the first channel's multiplier, shifts are a column behind. */
typedef struct {
    const int32_t *sums;
    const uint8_t *at;
    size_t column;
    uint8_t *to, *other; /* of the first and of the second pixel, which is stored before */
    uint32_t fours;
    int32_t zero, low, high;
} nk_finish_right_job;

void nk_finish_right(const nk_finish_right_job *job);

#endif

#endif
