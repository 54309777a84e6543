/* How accumulators become bytes without 64-bit arithmetic, for the calls whose numbers allow it.
 *
 * DOUBLE: mbqm(x, M, -e) is srdhm, (x * M + 2^30) >> 31, then rdp, a shift by e with halves away
 * from zero. With |x| < 2^30 the first is SMMULR of 2x and M, (2x * M + 2^31) >> 32: numerator and
 * divisor are doubled. Its result h has |h| <= 2^30, and rdp is (h - (h < 0) + 2^(e-1)) >> e, which
 * then stays inside 32 bits; for e = 0 nothing may be added.
 *
 * EXACT31: (x * M + 2^(s-1)) >> s with s >= 33 is (H + 2^(s-33)) >> (s - 32), H the high word of
 * the product, because the low word is less than one unit of H. |H| <= 2^30.
 */
#ifndef NK_STAGE_DSP_H
#define NK_STAGE_DSP_H

#include "nk_window.h"

#if NK_HAS_DSP

/* Largest accumulator of the short forms. */
#define NK_SHORT_LIMIT (1 << 30)

static inline int32_t nk_high_rounded(int32_t a, int32_t b) {
    int32_t high;
    __asm__("smmulr %0, %1, %2" : "=r"(high) : "r"(a), "r"(b));
    return high;
}

static inline int32_t nk_high(int32_t a, int32_t b) {
    int32_t high;
    __asm__("smmul %0, %1, %2" : "=r"(high) : "r"(a), "r"(b));
    return high;
}

/* mbqm for a shift of at most 0: `right` is what to shift by, `half` half of that or 0, `negative`
 * -1 where something is shifted and else 0. */
typedef struct {
    int32_t multiplier, half, negative;
    uint32_t right;
} nk_short_scale;

static inline nk_short_scale nk_make_short_scale(int32_t multiplier, int32_t shift) {
    const uint32_t right = (uint32_t)-shift;
    return (nk_short_scale){multiplier, right ? (int32_t)(1u << (right - 1)) : 0, right ? -1 : 0,
                            right};
}

static inline int32_t nk_short_mbqm(const nk_short_scale *s, int32_t value) {
    const int32_t high = nk_high_rounded(value * 2, s->multiplier);
    return (high + (s->negative & (high >> 31)) + s->half) >> s->right;
}

/* Which form the channels of a call have. */
enum { NK_STAGE_LONG, NK_STAGE_SHORT_DOUBLE, NK_STAGE_SHORT_EXACT31 };

/* dsp/stage_dsp.c: the form of all `channels`, whose sums of products are at most `most`. */
int nk_stage_form(const nk_stage *stage, uint32_t channels, uint64_t most);

static inline uint8_t nk_finish_dsp(const nk_stage *stage, int32_t value) {
    int32_t byte = nk_wrap_add(value, stage->zero);
    if (stage->low == INT8_MIN && stage->high == INT8_MAX) byte = __ssat(byte, 8);
    else byte = nk_clamp(byte, stage->low, stage->high);
    return stage->lut ? stage->lut[(uint8_t)byte] : (uint8_t)byte;
}

/* The output of one channel for up to two pixels, bias included in `acc`. */
static inline void nk_stage_pixels(const nk_stage *stage, int form, size_t channel,
                                   const int32_t *acc, uint32_t step, uint8_t *const *to,
                                   uint32_t pixels) {
    const uint8_t *at = stage->table + 4 * channel + stage->column;
    if (form == NK_STAGE_LONG) {
        for (uint32_t p = 0; p < pixels; ++p)
            to[p][channel] = nk_stage_output(stage, channel, acc[p * step]);
        return;
    }
    const int32_t multiplier = nk_load32(at), shift = nk_load32(at + stage->column);
    if (form == NK_STAGE_SHORT_EXACT31) {
        const int32_t half = 1 << (shift - 33);
        for (uint32_t p = 0; p < pixels; ++p)
            to[p][channel] =
                nk_finish_dsp(stage, (nk_high(acc[p * step], multiplier) + half) >> (shift - 32));
        return;
    }
    const nk_short_scale scale = nk_make_short_scale(multiplier, shift);
    for (uint32_t p = 0; p < pixels; ++p)
        to[p][channel] = nk_finish_dsp(stage, nk_short_mbqm(&scale, acc[p * step]));
}

#endif

#endif
