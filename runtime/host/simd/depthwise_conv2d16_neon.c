/* Depth-wise convolution of 16-bit activations: 8 channels at a time. Channels that are no multiple
 * of 8 end with a block that reaches back over finished ones. */
#include "loops.h"

#if NK_HAS_NEON

#include "depthwise16.h"
#include "wide_neon.h"

#define LANES NK_WIDE_LANES

typedef struct {
    nk_wide8 lanes;
    int16x8_t weights[NK_DEPTHWISE_TAPS];
    size_t pixel;
    uint32_t taps, channels;
} block;

static void fill_block(block *b, const nk_windows *w, const nk_wide_stage *stage,
                       const int8_t *packed) {
    for (uint32_t t = 0; t < w->taps; ++t) {
        int8_t some[LANES] = {0};
        for (uint32_t m = 0; m < b->channels; ++m)
            some[m] = nk_window_weight(w, packed, w->channel + m, t);
        b->weights[t] = vmovl_s8(vld1_s8(some));
    }
    nk_wide8_of(&b->lanes, stage, w->channel, b->channels, w->taps);
}

NK_INLINE int16x8_t load(const block *b, const uint8_t *from, const int part) {
    if (!part) return vreinterpretq_s16_u8(vld1q_u8(from));
    int16_t some[LANES] = {0};
    memcpy(some, from, 2 * (size_t)b->channels);
    return vld1q_s16(some);
}

NK_INLINE void add_tap(int32x4_t sum[2], int16x8_t x, int16x8_t w) {
    sum[0] = vmlal_s16(sum[0], vget_low_s16(x), vget_low_s16(w));
    sum[1] = vmlal_high_s16(sum[1], x, w);
}

NK_INLINE void pixels(const block *b, const uint8_t *const *taps, size_t step, uint32_t count,
                      uint8_t *to, const int part) {
    for (size_t at = 0; count; --count, at += step, to += b->pixel) {
        int32x4_t sum[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
        for (uint32_t t = 0; t < b->taps; ++t)
            add_tap(sum, load(b, taps[t] + at, part), b->weights[t]);
        nk_wide_finish32(&b->lanes, sum[0], sum[1], to);
    }
}

/* Windows of 3x3 with the short form, the usual ones: weights and constants stay in registers. */
static void nine_taps(const block *b, const uint8_t *const *taps, size_t step, uint32_t count,
                      uint8_t *to) {
    const nk_wide8 k = b->lanes;
    int16x8_t w[9];
    const uint8_t *from[9];
#pragma GCC unroll 9
    for (int t = 0; t < 9; ++t) w[t] = b->weights[t], from[t] = taps[t];
    for (size_t at = 0; count; --count, at += step, to += b->pixel) {
        int32x4_t sum[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
#pragma GCC unroll 9
        for (int t = 0; t < 9; ++t) add_tap(sum, load(b, from[t] + at, 0), w[t]);
        nk_wide_put(&k, nk_wide_short4(&k, sum[0], 0), nk_wide_short4(&k, sum[1], 1), to);
    }
}

static void run(const void *of, const uint8_t *const *taps, size_t step, uint32_t count,
                uint8_t *to) {
    const block *b = of;
    if (b->channels < LANES) pixels(b, taps, step, count, to, 1);
    else if (b->taps == 9 && count > 1 && b->lanes.form == NK_WIDE_SHORT)
        nine_taps(b, taps, step, count, to);
    else pixels(b, taps, step, count, to, 0);
}

int nk_depthwise_conv2d16_neon(const nk_call *call, const nk_wide_stage *stage) {
    nk_windows w;
    if (!nk_windows_of(call, &w)) return 0;
    const uint32_t channels = w.out->channels;
    block b; /* filled part by part: clearing it would cost as much as a small call */
    b.pixel = w.out->pixel, b.taps = w.taps;
    b.channels = channels < LANES ? channels : LANES;
    for (uint32_t channel = 0; channel < channels; channel += LANES) {
        w.channel = channel + b.channels <= channels ? channel : channels - b.channels;
        fill_block(&b, &w, stage,
                   (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D16_WEIGHTS].data);
        for (uint32_t image = 0; image < w.out->batch; ++image)
            for (int32_t y = call->row0; y < call->row1; ++y) nk_window_row(&w, image, y, run, &b);
    }
    return 1;
}

#endif
