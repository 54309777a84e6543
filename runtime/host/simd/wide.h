/* Shared by the loops for 16-bit activations, whatever the instruction set: how far 32 bits hold
 * their sums. A product of an activation and a weight is at most 2^22. */
#ifndef NK_SIMD_WIDE_H
#define NK_SIMD_WIDE_H

#include "nk_simd.h"

#if NK_HAS_SIMD

#define NK_WIDE_BITS 22
/* Products that a 32-bit lane can sum: fewer than 2^31 / 2^22, and whole blocks of 8. */
#define NK_WIDE_RUN 504

/* 1 when 32 bits hold every sum of `terms` products with the bias of channels [channel, channel +
 * count), and one product of 64 bits and a shift of at most 32 rescale it: the usual case. The
 * accumulators' width makes no difference then. */
static inline int nk_wide_is_short(const nk_wide_stage *stage, size_t channel, uint32_t count,
                                   uint64_t terms) {
    if (stage->rounding != NEUTRON_ROUNDING_SINGLE || terms > NK_WIDE_RUN) return 0;
    const int64_t room = INT32_MAX - ((int64_t)terms << NK_WIDE_BITS);
    for (uint32_t m = 0; m < count; ++m) {
        const int64_t bias = nk_wide_stage_bias(stage, channel + m);
        const uint8_t *shift = stage->table + 4 * (channel + m) + 2 * stage->column;
        if (bias > room || bias < -room || nk_load32(shift) > 32) return 0;
    }
    return 1;
}

#endif
#endif
