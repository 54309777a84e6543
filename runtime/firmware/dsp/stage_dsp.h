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

/* dsp/stage_dsp.c: whether all `channels` have a shift below 0, and sums of products of at most
 * `most` with their biases are below the limit; and outputs of INT8, without a table. */
bool nk_stage_is_short(const nk_stage *stage, uint32_t channels, uint64_t most);

/* Multiplier of a channel, what to shift by, and half of that. */
typedef struct {
    int32_t multiplier, half;
    uint32_t right;
} nk_channel_scale;

/* `at` is the channel's multiplier, its shift a column behind. */
static inline nk_channel_scale nk_channel_scale_at(const uint8_t *at, size_t column) {
    const int32_t shift = nk_load32(at + column);
    return (nk_channel_scale){nk_load32(at), (int32_t)(1u << ~(uint32_t)shift), (uint32_t)-shift};
}

static inline int32_t nk_channel_rescale(nk_channel_scale s, int32_t acc) {
    const int32_t high = nk_high_rounded(acc * 2, s.multiplier);
    return (high + (high >> 31) + s.half) >> s.right;
}

/* Bounds of two outputs in the halves of a word. */
typedef struct {
    int32_t zero;
    int16x2_t low, high;
} nk_pair_stage;

static inline nk_pair_stage nk_make_pair_stage(const nk_stage *stage) {
    return (nk_pair_stage){stage->zero, nk_twice(stage->low), nk_twice(stage->high)};
}

/* Two rescaled sums as outputs, in the low bytes of the halves. */
static inline uint32_t nk_finish_pair(const nk_pair_stage *stage, int32_t first, int32_t second) {
    uint32_t pair, scratch;
    first = __ssat(first + stage->zero, 8);
    second = __ssat(second + stage->zero, 8);
    __asm__("pkhbt %0, %2, %3, lsl #16\n"
            "ssub16 %1, %0, %4\n"
            "sel %0, %0, %4\n"
            "ssub16 %1, %0, %5\n"
            "sel %0, %5, %0\n"
            : "=&r"(pair), "=&r"(scratch)
            : "r"(first), "r"(second), "r"(stage->low), "r"(stage->high));
    return pair;
}

#endif

#endif
