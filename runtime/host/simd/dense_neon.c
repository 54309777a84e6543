/* Dense products with 8-bit multiplies into 16 bits, added in pairs to 32: every output keeps four
 * partial sums. Two products fit 16 bits unless both are -128 * -128; weights of -128, which
 * quantizers leave out, therefore get one product at a time. */
#include "loops.h"

#if NK_HAS_NEON

#define NK_TILE_MOST 2 /* 16 accumulators; 3 pixels would spill */
#include "dense_arm.h"

static void nk_look_at_weights(nk_slab *l, uint32_t blocks) {
    int8x16_t least = vdupq_n_s8(0);
    l->paired = l->b->rows * l->b->columns > 2; /* else it would cost more than pairs win */
    if (!l->paired) return;
    for (uint32_t i = 0; i < 4 * blocks; ++i)
        least = vminq_s8(least, vld1q_s8(l->weights + 16 * (size_t)i));
    l->paired = vminvq_s8(least) != -128;
}

NK_INLINE void tile(const nk_slab *l, const uint8_t *panel, uint8_t *to, const int P,
                    const int paired) {
    const nk_block *b = l->b;
    const size_t step = b->step;
    const int8_t *w = l->weights;
    int32x4_t sum[2][8];
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 8
        for (int o = 0; o < 8; ++o) sum[p][o] = vdupq_n_s32(0);
    for (uint32_t o = 0; o < b->outer; ++o, panel += b->outer_step) {
        const uint8_t *a = panel;
        uint32_t i = 0;
        for (; paired && i + 2 <= b->length; i += 2, a += 16, w += 128) {
            int8x16_t x[2][2];
#pragma GCC unroll 2
            for (int p = 0; p < P; ++p)
                x[p][0] = nk_twice(a + p * step), x[p][1] = nk_twice(a + p * step + 8);
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) {
                const int8x16_t w0 = vld1q_s8(w + 16 * j), w1 = vld1q_s8(w + 64 + 16 * j);
#pragma GCC unroll 2
                for (int p = 0; p < P; ++p) {
                    int16x8_t low = vmull_s8(vget_low_s8(w0), vget_low_s8(x[p][0]));
                    int16x8_t high = vmull_high_s8(w0, x[p][0]);
                    low = vmlal_s8(low, vget_low_s8(w1), vget_low_s8(x[p][1]));
                    high = vmlal_high_s8(high, w1, x[p][1]);
                    sum[p][2 * j] = vpadalq_s16(sum[p][2 * j], low);
                    sum[p][2 * j + 1] = vpadalq_s16(sum[p][2 * j + 1], high);
                }
            }
        }
        for (; i < b->length; ++i, a += 8, w += 64) {
            int8x16_t x[2];
#pragma GCC unroll 2
            for (int p = 0; p < P; ++p) x[p] = nk_twice(a + p * step);
            int8x16x4_t now;
            if (P == 1) now = vld1q_s8_x4(w); /* more pixels leave no four registers in a row */
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) {
                const int8x16_t w0 = P == 1 ? now.val[j] : vld1q_s8(w + 16 * j);
#pragma GCC unroll 2
                for (int p = 0; p < P; ++p) {
                    const int16x8_t low = vmull_s8(vget_low_s8(w0), vget_low_s8(x[p]));
                    sum[p][2 * j] = vpadalq_s16(sum[p][2 * j], low);
                    sum[p][2 * j + 1] = vpadalq_s16(sum[p][2 * j + 1], vmull_high_s8(w0, x[p]));
                }
            }
        }
    }
    int32x4_t whole[2][2];
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
            const int32x4_t *s = &sum[p][4 * h];
            const int32x4_t four = vpaddq_s32(vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3]));
            whole[p][h] = nk_wrap_add4(four, l->start[h]);
        }
    nk_leave_tile(l, whole, to, P);
}

/* Looking at the weights first would cost more than pairs win: they are used once. */
NK_INLINE void nk_lone_tile(const nk_slab *l, const uint8_t *panel, uint8_t *to) {
    tile(l, panel, to, 1, 0);
}

static void nk_tile(const nk_slab *l, const uint8_t *panel, uint32_t count, uint8_t *to) {
    if (count == 2 && l->paired) tile(l, panel, to, 2, 1);
    else if (count == 2) tile(l, panel, to, 2, 0);
    else if (l->paired) tile(l, panel, to, 1, 1);
    else tile(l, panel, to, 1, 0);
}

int nk_conv2d_neon(const nk_call *call, const nk_stage *stage) {
    return nk_conv2d_arm(call, stage);
}

int nk_fully_connected_neon(const nk_call *call, const nk_stage *stage) {
    return nk_fully_connected_arm(call, stage);
}

#endif
