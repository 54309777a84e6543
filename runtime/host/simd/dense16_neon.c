/* Dense products of 16-bit activations on packed weights as they lie: weights become 16-bit
 * numbers, and SMLAL leaves four partial sums of 32 bits per output. */
#include "loops.h"

#if NK_HAS_NEON

#include "wide_neon.h"

#define NK_SLAB NK_WIDE_LANES
#define NK_TILE 3 /* 24 accumulators leave registers for weights and activations */

typedef nk_wide8 nk_constants;
#define nk_constants_of nk_wide8_of

static inline void nk_finish32(const nk_constants *k, const int32_t *acc, uint8_t *to) {
    nk_wide_finish32(k, vld1q_s32(acc), vld1q_s32(acc + 4), to);
}

static void nk_finish64(const nk_constants *k, const int64_t *acc, uint8_t *to) {
    const int64x2_t sums[4] = {vld1q_s64(acc), vld1q_s64(acc + 2), vld1q_s64(acc + 4),
                               vld1q_s64(acc + 6)};
    nk_wide_finish64(k, sums, to);
}

#include "parts16.h"

/* P pixels times 8 outputs. */
NK_INLINE void tile(const nk_part16 *t, const uint8_t *panel, void *to, int wide, const int P) {
    const size_t step = t->step;
    const int8_t *weights = t->weights;
    int32x4_t sum[NK_TILE][8];
#pragma GCC unroll 3
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 8
        for (int o = 0; o < 8; ++o) sum[p][o] = vdupq_n_s32(0);
    for (uint32_t o = 0; o < t->outer; ++o, panel += t->outer_step, weights += t->weights_step) {
        const uint8_t *a = panel;
        const int8_t *w = weights;
        for (uint32_t i = 0; i < t->length; ++i, a += NK_PACK * NK_ITEM, w += NK_PACK * NK_PACK) {
            int16x8_t x[NK_TILE];
#pragma GCC unroll 3
            for (int p = 0; p < P; ++p) x[p] = vreinterpretq_s16_u8(vld1q_u8(a + p * step));
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) {
                const int8x16_t two = vld1q_s8(w + 16 * j);
                const int16x8_t even = vmovl_s8(vget_low_s8(two)), odd = vmovl_high_s8(two);
#pragma GCC unroll 3
                for (int p = 0; p < P; ++p) {
                    int32x4_t *s = &sum[p][2 * j];
                    s[0] = vmlal_s16(s[0], vget_low_s16(even), vget_low_s16(x[p]));
                    s[0] = vmlal_high_s16(s[0], even, x[p]);
                    s[1] = vmlal_s16(s[1], vget_low_s16(odd), vget_low_s16(x[p]));
                    s[1] = vmlal_high_s16(s[1], odd, x[p]);
                }
            }
        }
    }
#pragma GCC unroll 3
    for (int p = 0; p < P; ++p) {
        int32x4_t pairs[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) pairs[j] = vpaddq_s32(sum[p][2 * j], sum[p][2 * j + 1]);
        if (!wide) {
            int32_t *acc = (int32_t *)to + p * NK_SLAB;
            vst1q_s32(acc, vpaddq_s32(pairs[0], pairs[1]));
            vst1q_s32(acc + 4, vpaddq_s32(pairs[2], pairs[3]));
            continue;
        }
        int64_t *acc = (int64_t *)to + p * NK_SLAB;
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j)
            vst1q_s64(acc + 2 * j, vpadalq_s32(vld1q_s64(acc + 2 * j), pairs[j]));
    }
}

static void nk_tile16(const nk_part16 *t, const uint8_t *panel, uint32_t count, uint32_t groups,
                      void *to, int wide) {
    (void)groups;
    if (count == 3) tile(t, panel, to, wide, 3);
    else if (count == 2) tile(t, panel, to, wide, 2);
    else tile(t, panel, to, wide, 1);
}

int nk_conv2d16_neon(const nk_call *call, const nk_wide_stage *stage) {
    return nk_conv2d16_by(call, stage, nk_product16);
}

int nk_fully_connected16_neon(const nk_call *call, const nk_wide_stage *stage) {
    return nk_fully_connected16_by(call, stage, nk_product16);
}

#endif
