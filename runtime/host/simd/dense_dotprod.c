/* Dense products with SDOT: four inputs of four outputs against four inputs of a pixel. A block of
 * 8 outputs and 8 inputs comes in the right order from LD2, which parts even words (inputs 0-3 of
 * an output) from odd ones (4-7). */
#include "loops.h"

#if NK_HAS_NEON

#define NK_TILE_MOST \
    8 /* 16 accumulators, 8 pixels and 2 to 4 vectors of weights fill the registers */
#include "dense_arm.h"

static void nk_look_at_weights(nk_slab *l, uint32_t blocks) { (void)l, (void)blocks; }

/* Four outputs of a block: inputs 0-3, then 4-7. */
NK_INLINE int32x4x2_t four(const int8_t *w) { return vld2q_s32((const int32_t *)(const void *)w); }

#define DOT(sum, w, x, lane) vdotq_laneq_s32(sum, vreinterpretq_s8_s32(w), x, lane)

/* One pixel uses its weights once, so they stay as they lie: 8 inputs of two outputs in a vector
 * meet the pixel's 8 inputs twice, and halves are added at the end. */
NK_INLINE void nk_lone_tile(const nk_slab *l, const uint8_t *panel, uint8_t *to) {
    const nk_block *b = l->b;
    const int8_t *w = l->weights;
    int32x4_t part[4], sum[1][2];
    for (int j = 0; j < 4; ++j) part[j] = vdupq_n_s32(0);
    for (uint32_t o = 0; o < b->outer; ++o, panel += b->outer_step) {
        const uint8_t *a = panel;
        uint32_t i = b->length;
        for (; i >= 4; i -= 4, a += 32, w += 256)
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) {
                const int8x16_t x = nk_twice(a + 8 * k);
                const int8x16x4_t now = vld1q_s8_x4(w + 64 * k);
#pragma GCC unroll 4
                for (int j = 0; j < 4; ++j) part[j] = vdotq_s32(part[j], now.val[j], x);
            }
        for (; i; --i, a += 8, w += 64) {
            const int8x16_t x = nk_twice(a);
            const int8x16x4_t now = vld1q_s8_x4(w);
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) part[j] = vdotq_s32(part[j], now.val[j], x);
        }
    }
    sum[0][0] = nk_wrap_add4(vpaddq_s32(part[0], part[1]), l->start[0]);
    sum[0][1] = nk_wrap_add4(vpaddq_s32(part[2], part[3]), l->start[1]);
    nk_leave_tile(l, sum, to, 1);
}

NK_INLINE void tile(const nk_slab *l, const uint8_t *panel, uint8_t *to, const int P) {
    const nk_block *b = l->b;
    const size_t step = b->step;
    const int8_t *w = l->weights;
    int32x4_t sum[NK_TILE_MOST][2];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sum[p][0] = l->start[0], sum[p][1] = l->start[1];
    for (uint32_t o = 0; o < b->outer; ++o, panel += b->outer_step) {
        const uint8_t *a = panel;
        uint32_t i = 0;
        for (; i + 2 <= b->length; i += 2, a += 16) {
            int8x16_t x[NK_TILE_MOST];
#pragma GCC unroll 8
            for (int p = 0; p < P; ++p) x[p] = vreinterpretq_s8_u8(vld1q_u8(a + p * step));
#pragma GCC unroll 2
            for (int h = 0; h < 2; ++h, w += 32) {
                const int32x4x2_t now = four(w);
#pragma GCC unroll 8
                for (int p = 0; p < P; ++p) sum[p][h] = DOT(sum[p][h], now.val[0], x[p], 0);
#pragma GCC unroll 8
                for (int p = 0; p < P; ++p) sum[p][h] = DOT(sum[p][h], now.val[1], x[p], 1);
            }
#pragma GCC unroll 2
            for (int h = 0; h < 2; ++h, w += 32) {
                const int32x4x2_t now = four(w);
#pragma GCC unroll 8
                for (int p = 0; p < P; ++p) sum[p][h] = DOT(sum[p][h], now.val[0], x[p], 2);
#pragma GCC unroll 8
                for (int p = 0; p < P; ++p) sum[p][h] = DOT(sum[p][h], now.val[1], x[p], 3);
            }
        }
        if (i == b->length) continue;
        const int32x4x2_t w0 = four(w), w1 = four(w + 32);
        w += 64;
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) {
            const int8x8_t half = vreinterpret_s8_u8(vld1_u8(a + p * step));
            const int8x16_t x = vcombine_s8(half, half);
            sum[p][0] = DOT(DOT(sum[p][0], w0.val[0], x, 0), w0.val[1], x, 1);
            sum[p][1] = DOT(DOT(sum[p][1], w1.val[0], x, 0), w1.val[1], x, 1);
        }
    }
    nk_leave_tile(l, sum, to, P);
}

static void nk_tile(const nk_slab *l, const uint8_t *panel, uint32_t count, uint8_t *to) {
    switch (count) {
    case 8: tile(l, panel, to, 8); break;
    case 7: tile(l, panel, to, 7); break;
    case 6: tile(l, panel, to, 6); break;
    case 5: tile(l, panel, to, 5); break;
    case 4: tile(l, panel, to, 4); break;
    case 3: tile(l, panel, to, 3); break;
    case 2: tile(l, panel, to, 2); break;
    default: tile(l, panel, to, 1); break;
    }
}

int nk_conv2d_dotprod(const nk_call *call, const nk_stage *stage) {
    return nk_conv2d_arm(call, stage);
}

int nk_fully_connected_dotprod(const nk_call *call, const nk_stage *stage) {
    return nk_fully_connected_arm(call, stage);
}

#endif
