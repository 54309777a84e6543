/* Depth-wise convolution of 16-bit activations: 16 channels at a time, taps in pairs, whose
 * elements are put side by side for one multiply-add. Channels that are no multiple of 16 end with
 * a block that reaches back over finished ones. */
#include "loops.h"

#if NK_HAS_X86

#include "depthwise16.h"
#include "wide_avx2.h"

#define LANES NK_WIDE_LANES

typedef struct {
    const nk_wide_stage *stage;
    nk_wide_lanes lanes;
    __m256i weights[NK_DEPTHWISE_TAPS / 2]
                   [2]; /* pairs of taps, channels as unpacking leaves them */
    size_t channel, pixel;
    uint32_t pairs, channels;
} block;

static void fill_block(block *b, const nk_windows *w, const int8_t *packed) {
    int8_t tap[2][LANES];
    for (uint32_t t = 0; t < w->taps; t += 2) {
        memset(tap, 0, sizeof tap);
        for (uint32_t i = 0; i < 2 && t + i < w->taps; ++i)
            for (uint32_t m = 0; m < b->channels; ++m)
                tap[i][m] = nk_window_weight(w, packed, w->channel + m, t + i);
        const __m256i x = _mm256_cvtepi8_epi16(
                          _mm_loadu_si128((const __m128i *)(const void *)tap[0])),
                      y = _mm256_cvtepi8_epi16(
                          _mm_loadu_si128((const __m128i *)(const void *)tap[1]));
        b->weights[t / 2][0] = _mm256_unpacklo_epi16(x, y);
        b->weights[t / 2][1] = _mm256_unpackhi_epi16(x, y);
    }
    b->lanes = nk_wide_lanes_of(b->stage, w->channel, b->channels, w->taps);
}

static inline __attribute__((always_inline)) __m256i load(const block *b, const uint8_t *from,
                                                          const int part) {
    if (!part) return _mm256_loadu_si256((const __m256i *)(const void *)from);
    int16_t some[LANES] = {0};
    memcpy(some, from, 2 * (size_t)b->channels);
    return _mm256_loadu_si256((const __m256i *)(const void *)some);
}

static inline __attribute__((always_inline)) void pixels(const block *b, const uint8_t *const *taps,
                                                         size_t step, uint32_t count, uint8_t *to,
                                                         const int part) {
    for (size_t at = 0; count; --count, at += step, to += b->pixel) {
        __m256i even = _mm256_setzero_si256(), odd = even; /* channels 0-3, 8-11; the others */
        for (uint32_t t = 0; t < b->pairs; ++t) {
            const __m256i x = load(b, taps[2 * t] + at, part),
                          y = load(b, taps[2 * t + 1] + at, part);
            even = _mm256_add_epi32(
                even, _mm256_madd_epi16(_mm256_unpacklo_epi16(x, y), b->weights[t][0]));
            odd = _mm256_add_epi32(
                odd, _mm256_madd_epi16(_mm256_unpackhi_epi16(x, y), b->weights[t][1]));
        }
        nk_wide_finish32(b->stage, &b->lanes, _mm256_permute2x128_si256(even, odd, 0x20),
                         _mm256_permute2x128_si256(even, odd, 0x31), b->channels, b->channel, to);
    }
}

static void run(const void *of, const uint8_t *const *taps, size_t step, uint32_t count,
                uint8_t *to) {
    const block *b = of;
    if (b->channels == LANES) pixels(b, taps, step, count, to, 0);
    else pixels(b, taps, step, count, to, 1);
}

int nk_depthwise_conv2d16_avx2(const nk_call *call, const nk_wide_stage *stage) {
    nk_windows w;
    if (!nk_windows_of(call, &w)) return 0;
    const uint32_t channels = w.out->channels;
    block b; /* filled part by part: clearing it would cost as much as a small call */
    b.stage = stage, b.pixel = w.out->pixel, b.pairs = (w.taps + 1) / 2;
    b.channels = channels < LANES ? channels : LANES;
    for (uint32_t channel = 0; channel < channels; channel += LANES) {
        b.channel = w.channel = channel + b.channels <= channels ? channel : channels - b.channels;
        fill_block(&b, &w, (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D16_WEIGHTS].data);
        for (uint32_t image = 0; image < w.out->batch; ++image)
            for (int32_t y = call->row0; y < call->row1; ++y) nk_window_row(&w, image, y, run, &b);
    }
    return 1;
}

#endif
