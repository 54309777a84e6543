/* The requantize stage in NEON, four channels to a vector. SQRDMULH is nk_srdhm, saturation
 * included. SRSHL rounds halves up where nk_rdp rounds them away from zero; taking 1 off negative
 * numbers first moves exactly their halves. That cannot wrap: a high product is never INT32_MIN,
 * because |acc * M| <= 2^31 * (2^31 - 1) for every M but INT32_MIN, and -acc > INT32_MIN for that
 * one. A shift of 0 rounds nothing and must not lose the 1: `sign` is 0 there.
 *
 * Two forms. Plain, where every channel shifts right: the result is below 2^30, so it may saturate
 * to 16 bits before the zero point is added, and the clamp to a byte's range hides it. General, for
 * any multiplier and shift: the zero point is added in 32 bits and wraps as the definition's does.
 * A third one is nk_exact31, whose products of 64 bits SRSHL rounds as the definition does.
 */
#ifndef NK_STAGE_NEON_H
#define NK_STAGE_NEON_H

#include "nk_simd.h"

#if NK_HAS_NEON

#include <arm_neon.h>

#define NK_INLINE static inline __attribute__((always_inline))

/* 1 when a zero point is of its tensor's type, so that absent pixels can be bytes. */
NK_INLINE int nk_zero_is_byte(const nk_operand *in, int32_t zero) {
    return nk_flip(in) ? zero <= 127 : zero >= 0;
}

/* Constants of four channels. */
typedef struct {
    int32x4_t multiplier, right; /* `right` holds negative numbers, as SRSHL wants them */
    int32x4_t left, sign;        /* of the general form */
} nk_lanes4;

NK_INLINE nk_lanes4 nk_lanes4_of(int32x4_t multiplier, int32x4_t shift) {
    nk_lanes4 k;
    k.multiplier = multiplier;
    k.right = vminq_s32(shift, vdupq_n_s32(0));
    k.left = vmaxq_s32(shift, vdupq_n_s32(0));
    k.sign = vreinterpretq_s32_u32(vcltq_s32(shift, vdupq_n_s32(0)));
    return k;
}

/* Multiplied and shifted, zero point and clamp still missing. `plain` is a constant where this is
 * called. */
NK_INLINE int32x4_t nk_rescale4(const nk_lanes4 *k, int32x4_t acc, const int plain) {
    const int32x4_t h = vqrdmulhq_s32(plain ? acc : vshlq_s32(acc, k->left), k->multiplier);
    const int32x4_t down = plain ? h : vandq_s32(h, k->sign);
    return vrshlq_s32(vsraq_n_s32(h, down, 31), k->right);
}

/* nk_exact31; `right` holds -62 to -1. */
NK_INLINE int32x4_t nk_exact4(const nk_lanes4 *k, int32x4_t acc) {
    const int64x2_t low = vmull_s32(vget_low_s32(acc), vget_low_s32(k->multiplier));
    const int64x2_t high = vmull_high_s32(acc, k->multiplier);
    return vqmovn_high_s64(vqmovn_s64(vrshlq_s64(low, vmovl_s32(vget_low_s32(k->right)))),
                           vrshlq_s64(high, vmovl_high_s32(k->right)));
}

/* A sum that wraps; the intrinsic for signed lanes leaves overflow undefined. */
NK_INLINE int32x4_t nk_wrap_add4(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_u32(vaddq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}

/* Zero point and clamp of a byte type; UINT8 is computed 128 lower and flipped back. */
typedef struct {
    int32x4_t zero;  /* general form */
    int16x8_t added; /* plain: zero point - down; general: -down */
    int8x16_t low, high;
    uint8x16_t flip;
} nk_clamps;

/* 1 when zero point and clamp are of the byte type, as the compiler makes them. */
NK_INLINE int nk_clamps_of(nk_clamps *c, int is_signed, int32_t zero, int32_t low, int32_t high,
                           int plain) {
    const int32_t down = is_signed ? 0 : 128;
    c->zero = vdupq_n_s32(zero);
    c->added = vdupq_n_s16((int16_t)((plain ? zero : 0) - down));
    c->low = vdupq_n_s8((int8_t)(low - down));
    c->high = vdupq_n_s8((int8_t)(high - down));
    c->flip = vdupq_n_u8((uint8_t)down);
    return zero - down >= -128 && zero - down <= 127 && low - down >= -128 && low <= high &&
           high - down <= 127;
}

/* 16 rescaled numbers to bytes in order; `is_signed` of INT8 spares the flip where it is a
 * constant.
 */
NK_INLINE uint8x16_t nk_bytes16(const nk_clamps *c, int32x4_t v0, int32x4_t v1, int32x4_t v2,
                                int32x4_t v3, const int plain, const int is_signed) {
    if (!plain) {
        v0 = nk_wrap_add4(v0, c->zero), v1 = nk_wrap_add4(v1, c->zero);
        v2 = nk_wrap_add4(v2, c->zero), v3 = nk_wrap_add4(v3, c->zero);
    }
    const int16x8_t a = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(v0), v1), c->added);
    const int16x8_t b = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(v2), v3), c->added);
    const int8x16_t bytes = vqmovn_high_s16(vqmovn_s16(a), b);
    const uint8x16_t clamped = vreinterpretq_u8_s8(vminq_s8(vmaxq_s8(bytes, c->low), c->high));
    return is_signed ? clamped : veorq_u8(clamped, c->flip);
}

/* out[i] = table[in[i]] for 16 bytes: TBL answers 0 and TBX leaves its result where an index is
 * beyond its 64 entries. */
NK_INLINE uint8x16_t nk_look_up16(const uint8_t *table, uint8x16_t in) {
    uint8x16_t out = vqtbl4q_u8(vld1q_u8_x4(table), in);
    for (int part = 1; part < 4; ++part) {
        in = vsubq_u8(in, vdupq_n_u8(64));
        out = vqtbx4q_u8(out, vld1q_u8_x4(table + 64 * part), in);
    }
    return out;
}

/* Fewer than 4 INT32 of a table, then `rest`. */
static __attribute__((noinline, unused)) int32x4_t nk_part4(const uint8_t *at, uint32_t count,
                                                            int32_t rest) {
    int32_t values[4] = {rest, rest, rest, rest};
    if (count) memcpy(values, at, 4 * (size_t)count);
    return vld1q_s32(values);
}

NK_INLINE int32x4_t nk_column4(const uint8_t *at, uint32_t count, int32_t rest) {
    return count >= 4 ? vreinterpretq_s32_u8(vld1q_u8(at)) : nk_part4(at, count, rest);
}

/* How the channels of a group leave: one of the forms, or the definition channel by channel. */
enum { NK_DEFINITION, NK_GENERAL, NK_PLAIN, NK_EXACT };

/* Up to 16 channels of a stage. */
typedef struct {
    nk_lanes4 lanes[4];
    int32x4_t bias[4];
    nk_clamps clamps[2]; /* general form, plain form */
    const nk_stage *stage;
    size_t channel;
    uint32_t count;
    int fits, form;
} nk_leave;

/* What is the same for all channels of a stage that writes bytes of one sign. */
NK_INLINE void nk_leave_start(nk_leave *k, const nk_stage *stage, int is_signed) {
    k->stage = stage;
    for (int plain = 0; plain < 2; ++plain)
        k->fits =
            nk_clamps_of(&k->clamps[plain], is_signed, stage->zero, stage->low, stage->high, plain);
}

/* Channels [channel, channel + count), in the first `vectors` of `k`; filled in place, because
 * clearing or copying it costs as much as a small call. */
NK_INLINE void nk_leave_by(nk_leave *k, size_t channel, uint32_t count, const uint32_t vectors) {
    const nk_stage *stage = k->stage;
    const int exact = stage->rounding == NEUTRON_ROUNDING_EXACT31;
    k->channel = channel, k->count = count;
    int32x4_t largest = vdupq_n_s32(-1);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < vectors; ++i) {
        const uint8_t *at = stage->table + 4 * (channel + 4 * i);
        const uint32_t left = count > 4 * i ? count - 4 * i : 0;
        k->bias[i] = nk_column4(at, left, 0);
        const int32x4_t multiplier = nk_column4(at + stage->column, left, 0);
        int32x4_t shift = nk_column4(at + 2 * stage->column, left, -1);
        if (exact) shift = vnegq_s32(vminq_s32(vmaxq_s32(shift, vdupq_n_s32(1)), vdupq_n_s32(62)));
        else shift = vminq_s32(vmaxq_s32(shift, vdupq_n_s32(-31)), vdupq_n_s32(30));
        largest = vmaxq_s32(largest, shift);
        k->lanes[i] = nk_lanes4_of(multiplier, shift);
    }
    k->form = exact ? NK_EXACT : vmaxvq_s32(largest) < 0 ? NK_PLAIN : NK_GENERAL;
    if (!k->fits || (!exact && stage->rounding != NEUTRON_ROUNDING_DOUBLE)) k->form = NK_DEFINITION;
}

/* Accumulators to bytes by the definition; `acc` holds them in channel order. */
static __attribute__((noinline, unused)) void nk_leave_slowly(const nk_leave *k, const int32_t *acc,
                                                              uint32_t count, uint8_t *to) {
    for (uint32_t c = 0; c < count; ++c) to[c] = nk_stage_output(k->stage, k->channel + c, acc[c]);
}

#endif
#endif
