/* Depth-wise convolution of 16-bit activations: 32 channels at a time, 16 where fewer are left,
 * taps in pairs, whose elements are put side by side for one VPDPWSSD. */
#include "loops.h"

#if NK_HAS_X86

#include "depthwise16.h"
#include "wide_avx512.h"

#define LANES NK_DEPTHWISE_MOST

typedef struct {
    __m512i weights[NK_DEPTHWISE_TAPS / 2]
                   [2]; /* pairs of taps, channels as unpacking leaves them */
    nk_wide16 lanes[2];
    size_t pixel;
    uint32_t pairs, channels;
    __mmask32 kept;
} block;

/* The weights of one tap as 16-bit numbers. */
static inline __m512i tap(const block *b, const nk_windows *w, const int8_t *packed, uint32_t t) {
    int64_t groups[LANES / NK_DEPTHWISE_PACK] = {0};
    for (uint32_t g = 0; g * NK_DEPTHWISE_PACK < b->channels && t < w->taps; ++g)
        memcpy(&groups[g],
               packed +
                   ((w->channel / NK_DEPTHWISE_PACK + g) * (size_t)w->taps + t) * NK_DEPTHWISE_PACK,
               NK_DEPTHWISE_PACK);
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)groups));
}

static void fill_block(block *b, const nk_windows *w, const nk_wide_stage *stage,
                       const int8_t *packed) {
    for (uint32_t t = 0; t < w->taps; t += 2) {
        const __m512i x = tap(b, w, packed, t), y = tap(b, w, packed, t + 1);
        b->weights[t / 2][0] = _mm512_unpacklo_epi16(x, y);
        b->weights[t / 2][1] = _mm512_unpackhi_epi16(x, y);
    }
    b->kept = (__mmask32)(0xFFFFFFFFu >> (LANES - b->channels));
    for (uint32_t h = 0; h < 2 && 16 * h < b->channels; ++h) {
        const uint32_t left = b->channels - 16 * h;
        nk_wide16_of(&b->lanes[h], stage, w->channel + 16 * h, left < 16 ? left : 16, w->taps);
    }
}

static void run32(const void *of, const uint8_t *const *taps, size_t step, uint32_t count,
                  uint8_t *to) {
    const block *b = of;
    const __m512i front = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  back = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    for (size_t at = 0; count; --count, at += step, to += b->pixel) {
        __m512i even = _mm512_setzero_si512(), odd = even; /* of each 8 channels 0-3, and 4-7 */
        for (uint32_t t = 0; t < b->pairs; ++t) {
            const __m512i x = _mm512_maskz_loadu_epi16(b->kept, taps[2 * t] + at),
                          y = _mm512_maskz_loadu_epi16(b->kept, taps[2 * t + 1] + at);
            nk_dot2(&even, _mm512_unpacklo_epi16(x, y), b->weights[t][0]);
            nk_dot2(&odd, _mm512_unpackhi_epi16(x, y), b->weights[t][1]);
        }
        nk_wide_finish32(&b->lanes[0], _mm512_permutex2var_epi64(even, front, odd), to);
        nk_wide_finish32(&b->lanes[1], _mm512_permutex2var_epi64(even, back, odd), to + 32);
    }
}

/* Up to 16 channels: both halves of a pair are one register. */
static void run16(const void *of, const uint8_t *const *taps, size_t step, uint32_t count,
                  uint8_t *to) {
    const block *b = of;
    const __mmask16 kept = (__mmask16)b->kept;
    const __m512i front = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    for (size_t at = 0; count; --count, at += step, to += b->pixel) {
        __m256i even = _mm256_setzero_si256(), odd = even;
        for (uint32_t t = 0; t < b->pairs; ++t) {
            const __m256i x = _mm256_maskz_loadu_epi16(kept, taps[2 * t] + at),
                          y = _mm256_maskz_loadu_epi16(kept, taps[2 * t + 1] + at);
            even = _mm256_dpwssd_epi32(even, _mm256_unpacklo_epi16(x, y),
                                       _mm512_castsi512_si256(b->weights[t][0]));
            odd = _mm256_dpwssd_epi32(odd, _mm256_unpackhi_epi16(x, y),
                                      _mm512_castsi512_si256(b->weights[t][1]));
        }
        nk_wide_finish32(&b->lanes[0],
                         _mm512_permutex2var_epi64(_mm512_castsi256_si512(even), front,
                                                   _mm512_castsi256_si512(odd)),
                         to);
    }
}

int nk_depthwise_conv2d16_avx512(const nk_call *call, const nk_wide_stage *stage) {
    nk_windows w;
    if (!nk_windows_of(call, &w)) return 0;
    block b; /* filled part by part: clearing it would cost as much as a small call */
    b.pixel = w.out->pixel, b.pairs = (w.taps + 1) / 2;
    for (w.channel = 0; w.channel < w.out->channels; w.channel += LANES) {
        const uint32_t left = w.out->channels - w.channel;
        b.channels = left < LANES ? left : LANES;
        fill_block(&b, &w, stage,
                   (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D16_WEIGHTS].data);
        for (uint32_t image = 0; image < w.out->batch; ++image)
            for (int32_t y = call->row0; y < call->row1; ++y)
                nk_window_row(&w, image, y, b.channels > 16 ? run32 : run16, &b);
    }
    return 1;
}

#endif
