/* Depth-wise convolution of 16-bit activations: 8 channels at a time, taps in 32-bit lanes. */
#include "loops.h"

#if NK_HAS_X86

#include <immintrin.h>

#include "wide_avx2.h"

#define GROUP 8 /* M of the packing these loops read in place */

/* Output columns whose whole window lies inside the image, [first, last). */
static nk_span inner_columns(const nk_depthwise_conv2d16_params *p, const nk_operand *in,
                             const nk_operand *out) {
    const int32_t reach = (p->kernel_w - 1) * p->dilation_w;
    const int32_t first = (p->pad_left + p->stride_w - 1) / p->stride_w;
    const int64_t room = (int64_t)in->width - 1 - reach + p->pad_left;
    const int32_t last = room < 0 ? 0 : (int32_t)(room / p->stride_w) + 1;
    const int32_t width = (int32_t)out->width;
    return (nk_span){nk_min(first, width), nk_max(nk_min(last, width), nk_min(first, width))};
}

/* One output pixel of `count` channels from `channel` on; taps outside the image are left out. */
static void pixel(const nk_depthwise_conv2d16_params *p, const nk_operand *in, uint32_t image,
                  int32_t y, int32_t x, uint32_t channel, uint32_t count, int inner,
                  const int8_t *weights, int64_t *sums) {
    __m256i acc = _mm256_setzero_si256();
    for (int32_t ky = 0; ky < p->kernel_h; ++ky, weights += (size_t)p->kernel_w * GROUP) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        if (iy < 0 || (uint32_t)iy >= in->height) continue;
        const uint8_t *row = nk_row(in, image, iy) + 2 * (size_t)channel;
        for (int32_t kx = 0; kx < p->kernel_w; ++kx) {
            const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
            if (!inner && (ix < 0 || (uint32_t)ix >= in->width)) continue;
            const uint8_t *from = row + (size_t)ix * in->pixel;
            __m128i values;
            if (count == GROUP) {
                values = _mm_loadu_si128((const __m128i *)(const void *)from);
            } else {
                int16_t few[GROUP] = {0};
                memcpy(few, from, 2 * (size_t)count);
                values = _mm_loadu_si128((const __m128i *)(const void *)few);
            }
            const __m128i eight =
                _mm_loadl_epi64((const __m128i *)(const void *)(weights + (size_t)kx * GROUP));
            acc = _mm256_add_epi32(acc, _mm256_mullo_epi32(_mm256_cvtepi16_epi32(values),
                                                           _mm256_cvtepi8_epi32(eight)));
        }
    }
    _mm256_storeu_si256((__m256i *)(void *)sums,
                        _mm256_cvtepi32_epi64(_mm256_castsi256_si128(acc)));
    _mm256_storeu_si256((__m256i *)(void *)(sums + 4),
                        _mm256_cvtepi32_epi64(_mm256_extracti128_si256(acc, 1)));
}

int nk_depthwise_conv2d16_avx2(const nk_call *call, const nk_wide_stage *stage) {
    if (call->go_on != NULL) return 0; /* the portable loop looks at the clock */
    const nk_depthwise_conv2d16_params *p =
        (const nk_depthwise_conv2d16_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D16_INPUT];
    const nk_operand *out = &call->operands[NK_DEPTHWISE_CONV2D16_OUTPUT];
    const int64_t taps = (int64_t)p->kernel_h * p->kernel_w;
    if (call->units != GROUP || p->depth_multiplier != 1 || taps > NK_WIDE_RUN) return 0;
    const nk_span inner = inner_columns(p, in, out);
    const int8_t *weights = (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D16_WEIGHTS].data;
    for (uint32_t channel = 0; channel < out->channels;
         channel += GROUP, weights += (size_t)taps * GROUP) {
        const uint32_t left = out->channels - channel, count = left < GROUP ? left : GROUP;
        const nk_wide_lanes lanes = nk_wide_lanes_of(stage, channel, count);
        for (uint32_t image = 0; image < out->batch; ++image) {
            for (int32_t y = call->row0; y < call->row1; ++y) {
                uint8_t *to = nk_row(out, image, y) + 2 * (size_t)channel;
                for (int32_t x = 0; x < (int32_t)out->width; ++x, to += out->pixel) {
                    int64_t sums[GROUP];
                    pixel(p, in, image, y, x, channel, count, x >= inner.first && x < inner.last,
                          weights, sums);
                    nk_wide_finish(stage, &lanes, sums, count, channel, to);
                }
            }
        }
    }
    return 1;
}

#endif
