/* max_pool2d, avg_pool2d and pool_sum, channels side by side. Channels that are no multiple of the
 * lanes end with a vector that reaches back over finished ones; images with fewer channels than
 * lanes are left to the definition. */
#include "loops.h"

#if NK_HAS_NEON

#include "stage_neon.h"

#define BYTES 16  /* channels in a vector of a maximum */
#define WIDE 4    /* such vectors at a time: 64 channels, a usual width, walk the window once */
#define WORDS 8   /* channels of a sum at a time */
#define SHORT 128 /* taps whose sum fits 16 bits: 128 * 255 < 2^15 */
/* Up to this many taps the float quotient below is exact. */
#define MAX_TAPS 1024

#define MAX_ROWS 256 /* of a window; 2 KiB of addresses */

/* The taps of one output pixel: rows by address, because those of a ring wrap around. */
typedef struct {
    const uint8_t *rows[MAX_ROWS];
    int32_t count; /* rows inside the image */
    nk_span columns;
    size_t pixel;
} taps;

static void find_rows(taps *t, const nk_operand *in, uint32_t image, nk_span rows) {
    t->count = nk_max(rows.last - rows.first, 0);
    t->pixel = in->pixel;
    for (int32_t i = 0; i < t->count; ++i) t->rows[i] = nk_row(in, image, rows.first + i);
}

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

NK_INLINE uint8x16_t larger(uint8x16_t a, uint8x16_t b, const int is_signed) {
    if (!is_signed) return vmaxq_u8(a, b);
    return vreinterpretq_u8_s8(vmaxq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}

NK_INLINE uint8x16_t smaller(uint8x16_t a, uint8x16_t b, const int is_signed) {
    if (!is_signed) return vminq_u8(a, b);
    return vreinterpretq_u8_s8(vminq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}

/* Largest of the taps for `vectors` times 16 channels, and of the clamp's lower end, which is one
 * more tap: every row and column is walked once for all of them. */
NK_INLINE void max_channels(const taps *t, uint32_t channel, const nk_stage *stage, uint8_t *to,
                            const int vectors, const int is_signed) {
    const size_t first = (size_t)t->columns.first * t->pixel + channel;
    const int32_t columns = t->columns.last - t->columns.first;
    const uint8x16_t high = vdupq_n_u8((uint8_t)stage->high);
    uint8x16_t best[WIDE];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) best[v] = vdupq_n_u8((uint8_t)stage->low);
    for (int32_t i = 0; i < t->count; ++i) {
        const uint8_t *at = t->rows[i] + first;
        for (int32_t x = columns; x > 0; --x, at += t->pixel)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v)
                best[v] = larger(best[v], vld1q_u8(at + v * BYTES), is_signed);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
        vst1q_u8(to + channel + v * BYTES, smaller(best[v], high, is_signed));
}

NK_INLINE void max_pixel(const taps *t, uint32_t channels, const nk_stage *stage, uint8_t *to,
                         const int is_signed) {
    uint32_t c = 0;
    for (; c + WIDE * BYTES <= channels; c += WIDE * BYTES)
        max_channels(t, c, stage, to, WIDE, is_signed);
    for (; c < channels; c += BYTES)
        max_channels(t, c + BYTES <= channels ? c : channels - BYTES, stage, to, 1, is_signed);
}

int nk_max_pool2d_neon(const nk_call *call, const nk_stage *stage) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_max_pool2d_params *p = (const nk_max_pool2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    const int is_signed = nk_flip(in) != 0;
    if (in->dtype != out->dtype || out->channels < BYTES || p->kernel_h > MAX_ROWS ||
        !clamp_fits(stage, is_signed ? -128 : 0))
        return 0;
    taps t;
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *to = nk_row(out, image, y);
            find_rows(&t, in, image,
                      nk_span_of(y, p->stride_h, p->pad_top, p->kernel_h, in->height));
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                t.columns =
                    nk_span_of((int32_t)x, p->stride_w, p->pad_left, p->kernel_w, in->width);
                if (is_signed) max_pixel(&t, out->channels, stage, to, 1);
                else max_pixel(&t, out->channels, stage, to, 0);
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
NK_INLINE sum8 sum_of(sum8 sum, const taps *t, uint32_t channel, const int is_signed) {
    const size_t first = (size_t)t->columns.first * t->pixel + channel;
    const int32_t columns = t->columns.last - t->columns.first;
    int16x8_t some = vdupq_n_s16(0);
    uint32_t room = SHORT;
    for (int32_t i = 0; i < t->count; ++i) {
        const uint8_t *at = t->rows[i] + first;
        for (int32_t x = columns; x > 0; --x, at += t->pixel) {
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

NK_INLINE void mean_pixel(const taps *t, uint32_t channels, const nk_stage *stage, uint8_t *to,
                          const int is_signed) {
    const int32_t n = t->count * nk_max(t->columns.last - t->columns.first, 0);
    const int32x4_t low = vdupq_n_s32(stage->low), high = vdupq_n_s32(stage->high);
    const sum8 none = {vdupq_n_s32(0), vdupq_n_s32(0)};
    for (uint32_t c = 0; c < channels; c += WORDS) {
        const uint32_t from = c + WORDS <= channels ? c : channels - WORDS;
        sum8 v = none;
        if (n) {
            v = sum_of(none, t, from, is_signed);
            v.low = mean4(v.low, n), v.high = mean4(v.high, n);
        }
        v.low = vminq_s32(vmaxq_s32(v.low, low), high);
        v.high = vminq_s32(vmaxq_s32(v.high, low), high);
        const int16x8_t halves = vcombine_s16(vmovn_s32(v.low), vmovn_s32(v.high));
        vst1_u8(to + from, vreinterpret_u8_s8(vmovn_s16(halves)));
    }
}

int nk_avg_pool2d_neon(const nk_call *call, const nk_stage *stage) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_avg_pool2d_params *p = (const nk_avg_pool2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_AVG_POOL2D_INPUT],
                     *out = &call->operands[NK_AVG_POOL2D_OUTPUT];
    const int is_signed = nk_flip(in) != 0;
    if (in->dtype != out->dtype || out->channels < WORDS ||
        !clamp_fits(stage, is_signed ? -128 : 0))
        return 0;
    if (p->kernel_h > MAX_ROWS || (uint64_t)p->kernel_h * (uint32_t)p->kernel_w > MAX_TAPS)
        return 0;
    taps t;
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *to = nk_row(out, image, y);
            find_rows(&t, in, image,
                      nk_span_of(y, p->stride_h, p->pad_top, p->kernel_h, in->height));
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                t.columns =
                    nk_span_of((int32_t)x, p->stride_w, p->pad_left, p->kernel_w, in->width);
                if (is_signed) mean_pixel(&t, out->channels, stage, to, 1);
                else mean_pixel(&t, out->channels, stage, to, 0);
                apply_lut(stage, to, out->channels);
            }
        }
    }
    return 1;
}

int nk_pool_sum_neon(const nk_call *call) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_operand *in = &call->operands[NK_POOL_SUM_INPUT],
                     *out = &call->operands[NK_POOL_SUM_OUTPUT];
    const int is_signed = nk_flip(in) != 0;
    uint8_t *sums = nk_row(out, 0, 0);
    if (out->channels % WORDS) return 0;
    taps line;
    line.columns = (nk_span){0, (int32_t)in->width};
    for (uint32_t c = 0; c < out->channels; c += WORDS) {
        uint8_t *at = sums + 4 * (size_t)c;
        sum8 sum = {vdupq_n_s32(0), vdupq_n_s32(0)};
        if (call->row0 > 0) {
            sum.low = vreinterpretq_s32_u8(vld1q_u8(at));
            sum.high = vreinterpretq_s32_u8(vld1q_u8(at + 16));
        }
        for (int32_t y = call->row0; y < call->row1; ++y) {
            find_rows(&line, in, 0, (nk_span){y, y + 1});
            sum = is_signed ? sum_of(sum, &line, c, 1) : sum_of(sum, &line, c, 0);
        }
        vst1q_u8(at, vreinterpretq_u8_s32(sum.low));
        vst1q_u8(at + 16, vreinterpretq_u8_s32(sum.high));
    }
    return 1;
}

#endif
