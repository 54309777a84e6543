/* The stage of 16-bit activations on a host: sums of 64 bits become elements, 16 channels at a
 * time. The rounding is the definition's; that of doubles is done in doubles, which this processor
 * rounds as the definition does in integers. */
#ifndef NK_WIDE_AVX2_H
#define NK_WIDE_AVX2_H

#include <math.h>

#include "nk_simd.h"

#if NK_HAS_X86

#define NK_WIDE_LANES 16
/* Products that 32-bit lanes can sum: each has at most 22 bits. */
#define NK_WIDE_RUN 504

/* The channels' own columns of the table. */
typedef struct {
    int64_t bias[NK_WIDE_LANES], half[NK_WIDE_LANES];
    double factor[NK_WIDE_LANES];
    int32_t multiplier[NK_WIDE_LANES], shift[NK_WIDE_LANES];
} nk_wide_lanes;

static inline nk_wide_lanes nk_wide_lanes_of(const nk_wide_stage *stage, size_t channel,
                                             uint32_t count) {
    nk_wide_lanes k;
    memset(&k, 0, sizeof k);
    for (uint32_t m = 0; m < count; ++m) {
        const uint8_t *at = stage->table + 4 * (channel + m) + stage->column;
        const int32_t multiplier = nk_load32(at), shift = nk_load32(at + stage->column);
        k.bias[m] = nk_wide_stage_bias(stage, channel + m);
        k.multiplier[m] = multiplier;
        k.shift[m] = nk_clamp(shift, 1, 62);
        k.half[m] = (int64_t)1 << (k.shift[m] - 1);
        const uint64_t mantissa = (uint64_t)((uint32_t)multiplier & 0x7FFFFFFFu) << 22 |
                                  ((uint32_t)shift >> 8 & 0x3FFFFFu);
        k.factor[m] = ldexp((double)mantissa, -nk_clamp(shift & 0xFF, 1, 127));
    }
    return k;
}

/* `count` channels of one pixel. */
static inline void nk_wide_finish(const nk_wide_stage *stage, const nk_wide_lanes *k,
                                  const int64_t *acc, uint32_t count, size_t channel, uint8_t *to) {
    if (stage->rounding == NEUTRON_ROUNDING_SINGLE && !stage->narrow) {
        for (uint32_t m = 0; m < count; ++m) {
            const uint64_t total = (uint64_t)acc[m] + (uint64_t)k->bias[m];
            const uint64_t product = total * (uint64_t)(int64_t)k->multiplier[m];
            const int64_t sum = (int64_t)(product + (uint64_t)k->half[m]);
            const int32_t value = (int32_t)(uint32_t)(uint64_t)(sum >> k->shift[m]);
            nk_store16(to + 2 * m, nk_clamp(value, stage->low, stage->high));
        }
    } else if (stage->rounding == NEUTRON_ROUNDING_EXACT53) {
        for (uint32_t m = 0; m < count; ++m) {
            const uint64_t wide = (uint64_t)acc[m] + (uint64_t)k->bias[m];
            const int64_t total = stage->narrow ? (int32_t)(uint32_t)wide : (int64_t)wide;
            double t = (double)total * k->factor[m];
            t = t < -2147483648.0 ? -2147483648.0 : t > 2147483647.0 ? 2147483647.0 : t;
            /* The largest number below one half: adding it and cutting rounds halves away. */
            const int32_t value = (int32_t)(t + copysign(0.49999999999999994, t));
            nk_store16(to + 2 * m, nk_clamp(value, stage->low, stage->high));
        }
    } else {
        for (uint32_t m = 0; m < count; ++m)
            nk_store16(to + 2 * m, nk_wide_stage_output(stage, channel + m, acc[m]));
    }
}

#endif
#endif
