/* How accumulators become bytes without 64-bit arithmetic, where the numbers of a call allow it.
 *
 * mbqm(x, M, -e) is srdhm, (x * M + 2^30) >> 31, then rdp, a shift by e with halves away from zero.
 * With |x| < 2^30 the first is SMMULR of 2x and M, (2x * M + 2^31) >> 32: numerator and divisor are
 * doubled. Its result h has |h| <= 2^30, so that rdp is (h - (h < 0) + 2^(e-1)) >> e, which stays
 * inside 32 bits; for e = 0 nothing may be added.
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

/* Largest shift to the right for which a zero point fits into the number that is shifted. */
#define NK_SHORT_SHIFT 22

/* dsp/stage_dsp.c: whether all `channels` have a shift below 0 of at most NK_SHORT_SHIFT, and sums
 * of products of at most `most` with their biases are below the limit; and outputs of INT8, without
 * a table. */
bool nk_stage_is_short(const nk_stage *stage, uint32_t channels, uint64_t most);

/* Four outputs: what is added before the shift is the zero point and half of a step, in halves of
 * that; bounds in each byte. */
typedef struct {
    uint32_t added;
    int8x4_t low, high;
} nk_word_stage;

static inline nk_word_stage nk_make_word_stage(const nk_stage *stage) {
    const uint32_t each = 0x01010101u;
    return (nk_word_stage){2 * (uint32_t)stage->zero + 1, (int8x4_t)((uint8_t)stage->low * each),
                           (int8x4_t)((uint8_t)stage->high * each)};
}

/* Multiplier of a channel, what to add and then to shift by. */
typedef struct {
    int32_t multiplier, added;
    uint32_t right;
} nk_channel_scale;

/* `at` is the channel's multiplier, its shift a column behind. */
static inline nk_channel_scale nk_channel_scale_at(const nk_word_stage *stage, const uint8_t *at,
                                                   size_t column) {
    const uint32_t shift = (uint32_t)nk_load32(at + column);
    return (nk_channel_scale){nk_load32(at), (int32_t)(stage->added << (~shift & 31u)), 0 - shift};
}

/* With the zero point. */
static inline int32_t nk_channel_rescale(nk_channel_scale s, int32_t acc) {
    const int32_t high = nk_high_rounded(acc * 2, s.multiplier);
    return (high + (high >> 31) + s.added) >> (s.right & 31u);
}

/* One output of a channel. */
static inline uint8_t nk_channel_output(const nk_stage *stage, nk_channel_scale s, int32_t acc) {
    return (uint8_t)nk_clamp(nk_channel_rescale(s, acc), stage->low, stage->high);
}

/* Outputs of fours of channels of two pixels. Sums are in the order of channels, those of one
 * channel beside each other; `at` is the first channel's multiplier, shifts are a column behind. */
typedef struct {
    const int32_t *sums;
    const uint8_t *at;
    size_t column;
    uint32_t added;
    uint8_t *to, *other; /* of the first and of the second pixel, which is stored before */
    uint32_t fours;      /* at least one */
    int8x4_t low, high;
} nk_finish_fours_job;

void nk_finish_fours(const nk_finish_fours_job *job);

#endif

#endif
