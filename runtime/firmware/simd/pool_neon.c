/* max_pool2d, avg_pool2d and pool_sum, channels side by side. Channels that are no multiple of the
 * lanes end with a vector that reaches back over finished ones; images with fewer channels than
 * lanes are left to the definition. */
#include "loops.h"

#if NK_HAS_NEON

#include "stage_neon.h"

#define BYTES 16  /* channels of a maximum at a time */
#define WORDS 8   /* channels of a sum at a time */
#define SHORT 128 /* taps whose sum fits 16 bits: 128 * 255 < 2^15 */
/* Up to this many taps the float quotient below is exact. */
#define MAX_TAPS 1024

typedef struct {
    nk_span rows, columns;
} taps;

typedef struct {
    int32x4_t low, high;
} sum8;

static void apply_lut(const nk_stage *stage, uint8_t *to, uint32_t count) {
    if (stage->lut) nk_look_up_neon(stage->lut, to, to, count);
}

/* 1 when the clamp is of the byte type, as the compiler makes it. */
static int clamp_fits(const nk_stage *stage, int32_t lowest) {
    return stage->low >= lowest && stage->low <= stage->high && stage->high <= lowest + 255 &&
           stage->zero == 0;
}

/* Largest of the taps for 16 channels; bytes are flipped so that they order as signed. */
NK_INLINE int8x16_t max16(const nk_operand *in, uint32_t image, taps t, uint32_t channel,
                          uint8x16_t flip) {
    int8x16_t best = vdupq_n_s8(-128);
    for (int32_t iy = t.rows.first; iy < t.rows.last; ++iy) {
        const uint8_t *at = nk_row(in, image, iy) + (size_t)t.columns.first * in->pixel + channel;
        for (int32_t ix = t.columns.first; ix < t.columns.last; ++ix, at += in->pixel)
            best = vmaxq_s8(best, vreinterpretq_s8_u8(veorq_u8(vld1q_u8(at), flip)));
    }
    return best;
}

int nk_max_pool2d_neon(const nk_call *call, const nk_stage *stage) {
    const nk_max_pool2d_params *p = (const nk_max_pool2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    const int32_t down = nk_flip(in) ? 0 : 128;
    if (in->dtype != out->dtype || out->channels < BYTES || !clamp_fits(stage, down - 128))
        return 0;
    const uint8x16_t flip = vdupq_n_u8((uint8_t)down);
    const int8x16_t low = vdupq_n_s8((int8_t)(stage->low - down)),
                    high = vdupq_n_s8((int8_t)(stage->high - down));
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *to = nk_row(out, image, y);
            taps t = {.rows = nk_span_of(y, p->stride_h, p->pad_top, p->kernel_h, in->height)};
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                t.columns =
                    nk_span_of((int32_t)x, p->stride_w, p->pad_left, p->kernel_w, in->width);
                for (uint32_t c = 0; c < out->channels; c += BYTES) {
                    const uint32_t from = c + BYTES <= out->channels ? c : out->channels - BYTES;
                    const int8x16_t best =
                        vminq_s8(vmaxq_s8(max16(in, image, t, from, flip), low), high);
                    vst1q_u8(to + from, veorq_u8(vreinterpretq_u8_s8(best), flip));
                }
                apply_lut(stage, to, out->channels);
            }
        }
    }
    return 1;
}

NK_INLINE sum8 plus(sum8 sum, int16x8_t more) {
    sum.low = vaddw_s16(sum.low, vget_low_s16(more));
    sum.high = vaddw_high_s16(sum.high, more);
    return sum;
}

/* Sum of the taps for 8 channels, in 16 bits as long as that holds them. */
NK_INLINE sum8 sum_of(sum8 sum, const nk_operand *in, uint32_t image, taps t, uint32_t channel,
                      const int is_signed) {
    int16x8_t some = vdupq_n_s16(0);
    uint32_t room = SHORT;
    for (int32_t iy = t.rows.first; iy < t.rows.last; ++iy) {
        const uint8_t *at = nk_row(in, image, iy) + (size_t)t.columns.first * in->pixel + channel;
        for (int32_t ix = t.columns.first; ix < t.columns.last; ++ix, at += in->pixel) {
            const uint8x8_t bytes = vld1_u8(at);
            some = is_signed ? vaddw_s8(some, vreinterpret_s8_u8(bytes))
                             : vreinterpretq_s16_u16(vaddw_u8(vreinterpretq_u16_s16(some), bytes));
            if (--room) continue;
            sum = plus(sum, some);
            some = vdupq_n_s16(0);
            room = SHORT;
        }
    }
    return plus(sum, some);
}

/* (|sum| + n/2) / n with the sign put back. The dividend is below 2^19, exact in float; half a step
 * of 1/n is added, so the product lies at least 1/(2n) >= 2^-11 from every integer, and its error
 * is below 2^-14: truncation finds the quotient. */
NK_INLINE int32x4_t mean4(int32x4_t sum, int32_t n) {
    const float32x4_t inverse = vdupq_n_f32(1.0f / (float)n), half = vdupq_n_f32(0.5f / (float)n);
    const int32x4_t dividend = vaddq_s32(vabsq_s32(sum), vdupq_n_s32(n / 2));
    const float32x4_t product = vmulq_f32(vcvtq_f32_s32(dividend), inverse);
    const int32x4_t quotient = vcvtq_s32_f32(vaddq_f32(product, half));
    return vbslq_s32(vcltq_s32(sum, vdupq_n_s32(0)), vnegq_s32(quotient), quotient);
}

NK_INLINE void means(const nk_operand *in, uint32_t image, taps t, uint32_t channel, int32_t n,
                     int32x4_t low, int32x4_t high, uint8_t *to, const int is_signed) {
    const sum8 none = {vdupq_n_s32(0), vdupq_n_s32(0)};
    sum8 v = none;
    if (n) {
        v = sum_of(none, in, image, t, channel, is_signed);
        v.low = mean4(v.low, n), v.high = mean4(v.high, n);
    }
    v.low = vminq_s32(vmaxq_s32(v.low, low), high),
    v.high = vminq_s32(vmaxq_s32(v.high, low), high);
    vst1_s8((int8_t *)to, vmovn_s16(vcombine_s16(vmovn_s32(v.low), vmovn_s32(v.high))));
}

int nk_avg_pool2d_neon(const nk_call *call, const nk_stage *stage) {
    const nk_avg_pool2d_params *p = (const nk_avg_pool2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_AVG_POOL2D_INPUT],
                     *out = &call->operands[NK_AVG_POOL2D_OUTPUT];
    const int is_signed = nk_flip(in) != 0;
    if (in->dtype != out->dtype || out->channels < WORDS ||
        !clamp_fits(stage, is_signed ? -128 : 0))
        return 0;
    if ((uint64_t)p->kernel_h * (uint32_t)p->kernel_w > MAX_TAPS) return 0;
    const int32x4_t low = vdupq_n_s32(stage->low), high = vdupq_n_s32(stage->high);
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *to = nk_row(out, image, y);
            taps t = {.rows = nk_span_of(y, p->stride_h, p->pad_top, p->kernel_h, in->height)};
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                t.columns =
                    nk_span_of((int32_t)x, p->stride_w, p->pad_left, p->kernel_w, in->width);
                const int32_t n = nk_max(t.rows.last - t.rows.first, 0) *
                                  nk_max(t.columns.last - t.columns.first, 0);
                for (uint32_t c = 0; c < out->channels; c += WORDS) {
                    const uint32_t from = c + WORDS <= out->channels ? c : out->channels - WORDS;
                    if (is_signed) means(in, image, t, from, n, low, high, to + from, 1);
                    else means(in, image, t, from, n, low, high, to + from, 0);
                }
                apply_lut(stage, to, out->channels);
            }
        }
    }
    return 1;
}

int nk_pool_sum_neon(const nk_call *call) {
    const nk_operand *in = &call->operands[NK_POOL_SUM_INPUT],
                     *out = &call->operands[NK_POOL_SUM_OUTPUT];
    const int is_signed = nk_flip(in) != 0;
    uint8_t *sums = nk_row(out, 0, 0);
    if (out->channels % WORDS) return 0;
    for (uint32_t c = 0; c < out->channels; c += WORDS) {
        uint8_t *at = sums + 4 * (size_t)c;
        sum8 sum = {vdupq_n_s32(0), vdupq_n_s32(0)};
        if (call->row0 > 0) {
            sum.low = vreinterpretq_s32_u8(vld1q_u8(at));
            sum.high = vreinterpretq_s32_u8(vld1q_u8(at + 16));
        }
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const taps line = {.rows = {y, y + 1}, .columns = {0, (int32_t)in->width}};
            sum = is_signed ? sum_of(sum, in, 0, line, c, 1) : sum_of(sum, in, 0, line, c, 0);
        }
        vst1q_u8(at, vreinterpretq_u8_s32(sum.low));
        vst1q_u8(at + 16, vreinterpretq_u8_s32(sum.high));
    }
    return 1;
}

#endif
