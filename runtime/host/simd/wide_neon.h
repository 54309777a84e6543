/* The stage of 16-bit activations in NEON, 8 channels at a time: sums become elements in one of
 * four forms, or by the definition channel by channel. Short: 32 bits hold the sums (wide.h), and
 * SRSHL rounds their products. Long: sums of 64 bits, which wrap as the definition's do, so that
 * nothing may be rounded beyond them. Real: doubles, rounded once by the product and once by
 * FCVTAS. Twice: nk_rescale4 of what 32 bits keep. */
#ifndef NK_WIDE_NEON_H
#define NK_WIDE_NEON_H

#include <math.h>

#include "stage_neon.h"
#include "wide.h"

#if NK_HAS_NEON

#define NK_WIDE_LANES 8

enum { NK_WIDE_SHORT, NK_WIDE_LONG, NK_WIDE_REAL, NK_WIDE_TWICE, NK_WIDE_DEFINITION };

typedef struct {
    int32x4_t bias32[2], multiplier[2];
    int64x2_t bias[4], half[4], right[4]; /* `right` holds negative numbers, as SSHL wants them */
    float64x2_t factor[4];
    nk_lanes4 lanes[2]; /* of the form Twice */
    int16x8_t low, high;
    const nk_wide_stage *stage;
    size_t channel;
    uint32_t count;
    uint8_t form, narrow;
} nk_wide8;

/* Channels [channel, channel + count) whose sums have `terms` products. */
static inline void nk_wide8_of(nk_wide8 *k, const nk_wide_stage *stage, size_t channel,
                               uint32_t count, uint64_t terms) {
    int64_t bias[8] = {0}, half[8] = {0}, right[8] = {0};
    int32_t bias32[8] = {0}, multiplier[8] = {0}, shift32[8] = {0};
    double factor[8] = {0};
    const int real = stage->rounding == NEUTRON_ROUNDING_EXACT53;
    int positive = 1;
    for (uint32_t m = 0; m < count; ++m) {
        const uint8_t *at = stage->table + 4 * (channel + m) + stage->column;
        const int32_t by = nk_load32(at + stage->column), shift = nk_clamp(by, 1, 62);
        bias[m] = nk_wide_stage_bias(stage, channel + m);
        bias32[m] = (int32_t)(uint32_t)(uint64_t)bias[m];
        multiplier[m] = nk_load32(at);
        positive &= multiplier[m] >= 0;
        right[m] = -shift, half[m] = (int64_t)1 << (shift - 1);
        shift32[m] = nk_clamp(by, -31, 30);
        const uint64_t mantissa = (uint64_t)((uint32_t)multiplier[m] & 0x7FFFFFFFu) << 22 |
                                  ((uint32_t)by >> 8 & 0x3FFFFFu);
        if (real) factor[m] = ldexp((double)mantissa, -nk_clamp(by & 0xFF, 1, 127));
    }
    for (int i = 0; i < 2; ++i) {
        k->bias32[i] = vld1q_s32(bias32 + 4 * i);
        k->multiplier[i] = vld1q_s32(multiplier + 4 * i);
        k->lanes[i] = nk_lanes4_of(k->multiplier[i], vld1q_s32(shift32 + 4 * i));
    }
    for (int i = 0; i < 4; ++i) {
        k->bias[i] = vld1q_s64(bias + 2 * i);
        k->half[i] = vld1q_s64(half + 2 * i);
        k->right[i] = vld1q_s64(right + 2 * i);
        k->factor[i] = vld1q_f64(factor + 2 * i);
    }
    k->low = vdupq_n_s16((int16_t)stage->low), k->high = vdupq_n_s16((int16_t)stage->high);
    k->stage = stage, k->channel = channel, k->count = count, k->narrow = stage->narrow;
    if (nk_wide_is_short(stage, channel, count, terms)) k->form = NK_WIDE_SHORT;
    else if (real) k->form = NK_WIDE_REAL;
    else if (stage->rounding == NEUTRON_ROUNDING_DOUBLE) k->form = NK_WIDE_TWICE;
    else k->form = positive && !stage->narrow ? NK_WIDE_LONG : NK_WIDE_DEFINITION;
}

/* Saturating to 16 bits changes nothing that the clamp keeps. */
NK_INLINE void nk_wide_put(const nk_wide8 *k, int32x4_t first, int32x4_t last, uint8_t *to) {
    const int16x8_t words = vqmovn_high_s32(vqmovn_s32(first), last);
    const int16x8_t clamped = vminq_s16(vmaxq_s16(words, k->low), k->high);
    if (k->count == NK_WIDE_LANES) {
        vst1q_u8(to, vreinterpretq_u8_s16(clamped));
        return;
    }
    int16_t some[NK_WIDE_LANES];
    vst1q_s16(some, clamped);
    memcpy(to, some, 2 * (size_t)k->count);
}

NK_INLINE int32x4_t nk_wide_short4(const nk_wide8 *k, int32x4_t acc, const int i) {
    const int32x4_t total = vaddq_s32(acc, k->bias32[i]), by = k->multiplier[i];
    const int64x2_t low = vmull_s32(vget_low_s32(total), vget_low_s32(by));
    const int64x2_t high = vmull_high_s32(total, by);
    return vmovn_high_s64(vmovn_s64(vrshlq_s64(low, k->right[2 * i])),
                          vrshlq_s64(high, k->right[2 * i + 1]));
}

/* A sum that wraps; the intrinsic for signed lanes leaves overflow undefined. */
NK_INLINE int64x2_t nk_wrap_add2(int64x2_t a, int64x2_t b) {
    return vreinterpretq_s64_u64(vaddq_u64(vreinterpretq_u64_s64(a), vreinterpretq_u64_s64(b)));
}

/* The low 64 bits of a product with a positive multiplier, rounded and shifted. */
NK_INLINE int32x2_t nk_wide_long2(const nk_wide8 *k, int64x2_t acc, const int i) {
    const uint64x2_t total = vreinterpretq_u64_s64(nk_wrap_add2(acc, k->bias[i]));
    const uint32x4_t all = vreinterpretq_u32_s32(k->multiplier[i / 2]);
    const uint32x2_t by = i % 2 ? vget_high_u32(all) : vget_low_u32(all);
    const uint32x2_t upper = vmul_u32(vshrn_n_u64(total, 32), by);
    const uint64x2_t product =
        vaddq_u64(vmull_u32(vmovn_u64(total), by), vshlq_n_u64(vmovl_u32(upper), 32));
    const int64x2_t rounded = nk_wrap_add2(vreinterpretq_s64_u64(product), k->half[i]);
    return vmovn_s64(vshlq_s64(rounded, k->right[i]));
}

NK_INLINE int32x2_t nk_wide_real2(const nk_wide8 *k, int64x2_t acc, const int i) {
    int64x2_t total = nk_wrap_add2(acc, k->bias[i]);
    if (k->narrow) total = vmovl_s32(vmovn_s64(total));
    return vqmovn_s64(vcvtaq_s64_f64(vmulq_f64(vcvtq_f64_s64(total), k->factor[i])));
}

static __attribute__((noinline, unused)) void nk_wide_by_definition(const nk_wide8 *k,
                                                                    const int64x2_t acc[4],
                                                                    uint8_t *to) {
    int64_t sums[8];
    for (int i = 0; i < 4; ++i) vst1q_s64(sums + 2 * i, acc[i]);
    for (uint32_t m = 0; m < k->count; ++m)
        nk_store16(to + 2 * m, nk_wide_stage_output(k->stage, k->channel + m, sums[m]));
}

/* 8 sums of 64 bits. */
NK_INLINE void nk_wide_finish64(const nk_wide8 *k, const int64x2_t acc[4], uint8_t *to) {
    int32x4_t v[2];
    if (k->form == NK_WIDE_DEFINITION) {
        nk_wide_by_definition(k, acc, to);
        return;
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
        if (k->form == NK_WIDE_LONG) {
            v[i] = vcombine_s32(nk_wide_long2(k, acc[2 * i], 2 * i),
                                nk_wide_long2(k, acc[2 * i + 1], 2 * i + 1));
        } else if (k->form == NK_WIDE_REAL) {
            v[i] = vcombine_s32(nk_wide_real2(k, acc[2 * i], 2 * i),
                                nk_wide_real2(k, acc[2 * i + 1], 2 * i + 1));
        } else {
            const int32x4_t kept = vcombine_s32(vmovn_s64(acc[2 * i]), vmovn_s64(acc[2 * i + 1]));
            v[i] = nk_rescale4(&k->lanes[i], nk_wrap_add4(kept, k->bias32[i]), 0);
        }
    }
    nk_wide_put(k, v[0], v[1], to);
}

/* 8 sums of 32 bits. */
NK_INLINE void nk_wide_finish32(const nk_wide8 *k, int32x4_t first, int32x4_t last, uint8_t *to) {
    if (k->form == NK_WIDE_SHORT) {
        nk_wide_put(k, nk_wide_short4(k, first, 0), nk_wide_short4(k, last, 1), to);
        return;
    }
    const int64x2_t acc[4] = {vmovl_s32(vget_low_s32(first)), vmovl_high_s32(first),
                              vmovl_s32(vget_low_s32(last)), vmovl_high_s32(last)};
    nk_wide_finish64(k, acc, to);
}

#endif
#endif
