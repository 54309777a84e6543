/* Dense products with SMMLA: 8 inputs of two outputs, as the packing holds them, against 8 inputs
 * of two pixels. */
#include "loops.h"

#if NK_HAS_NEON

#define NK_TILE_MOST 8 /* 16 accumulators, 8 vectors of pixels, 4 of weights */
#include "dense_arm.h"

static void nk_look_at_weights(nk_slab *l, uint32_t blocks) { (void)l, (void)blocks; }

NK_INLINE int8x16_t pixel_bytes(const uint8_t *at) { return vreinterpretq_s8_u8(vld1q_u8(at)); }

NK_INLINE int8x16_t zip_low(int8x16_t a, int8x16_t b) {
    return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

NK_INLINE int8x16_t zip_high(int8x16_t a, int8x16_t b) {
    return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

NK_INLINE int32x4_t pairs_low(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}

NK_INLINE int32x4_t pairs_high(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}

/* P pixels, the last of an odd number twice; sum[pair][j] holds outputs 2j and 2j + 1 of two
 * pixels. */
NK_INLINE void tile(const nk_slab *l, const uint8_t *panel, uint8_t *to, const int P) {
    const nk_block *b = l->b;
    const size_t step = b->step;
    const int8_t *w = l->weights;
    const int pairs = (P + 1) / 2;
    int32x4_t sum[NK_TILE_MOST / 2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
        const int32x4_t start = j % 2 ? pairs_high(l->start[j / 2], l->start[j / 2])
                                      : pairs_low(l->start[j / 2], l->start[j / 2]);
#pragma GCC unroll 4
        for (int q = 0; q < pairs; ++q) sum[q][j] = start;
    }
    for (uint32_t o = 0; o < b->outer; ++o, panel += b->outer_step) {
        const uint8_t *a = panel;
        uint32_t i = 0;
        for (; i + 2 <= b->length; i += 2, a += 16, w += 128) {
            int8x16_t x[NK_TILE_MOST / 2][2];
#pragma GCC unroll 4
            for (int q = 0; q < pairs; ++q) {
                const int8x16_t one = pixel_bytes(a + 2 * q * step);
                const int8x16_t other = 2 * q + 1 < P ? pixel_bytes(a + (2 * q + 1) * step) : one;
                x[q][0] = zip_low(one, other), x[q][1] = zip_high(one, other);
            }
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) {
                const int8x16_t w0 = vld1q_s8(w + 16 * j), w1 = vld1q_s8(w + 64 + 16 * j);
#pragma GCC unroll 4
                for (int q = 0; q < pairs; ++q) sum[q][j] = vmmlaq_s32(sum[q][j], x[q][0], w0);
#pragma GCC unroll 4
                for (int q = 0; q < pairs; ++q) sum[q][j] = vmmlaq_s32(sum[q][j], x[q][1], w1);
            }
        }
        if (i == b->length) continue;
        int8x16_t x[NK_TILE_MOST / 2];
#pragma GCC unroll 4
        for (int q = 0; q < pairs; ++q) {
            const int8x8_t one = vreinterpret_s8_u8(vld1_u8(a + 2 * q * step));
            const int8x8_t other =
                2 * q + 1 < P ? vreinterpret_s8_u8(vld1_u8(a + (2 * q + 1) * step)) : one;
            x[q] = vcombine_s8(one, other);
        }
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
            const int8x16_t w0 = vld1q_s8(w + 16 * j);
#pragma GCC unroll 4
            for (int q = 0; q < pairs; ++q) sum[q][j] = vmmlaq_s32(sum[q][j], x[q], w0);
        }
        w += 64;
    }
    int32x4_t whole[NK_TILE_MOST][2];
#pragma GCC unroll 4
    for (int q = 0; q < pairs; ++q)
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
            whole[2 * q][h] = pairs_low(sum[q][2 * h], sum[q][2 * h + 1]);
            whole[2 * q + 1][h] = pairs_high(sum[q][2 * h], sum[q][2 * h + 1]);
        }
    nk_leave_tile(l, whole, to, P);
}

NK_INLINE void nk_lone_tile(const nk_slab *l, const uint8_t *panel, uint8_t *to) {
    tile(l, panel, to, 1);
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

int nk_conv2d_i8mm(const nk_call *call, const nk_stage *stage) {
    return nk_conv2d_arm(call, stage);
}

/* A vector alone would leave half of each matrix instruction unused. */
int nk_fully_connected_i8mm(const nk_call *call, const nk_stage *stage) {
    const nk_operand *out = &call->operands[NK_FULLY_CONNECTED_OUTPUT];
    if (out->width == 1) return nk_fully_connected_dotprod(call, stage);
    return nk_fully_connected_arm(call, stage);
}

#endif
