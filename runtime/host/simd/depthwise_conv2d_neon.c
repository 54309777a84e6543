/* depthwise_conv2d, 16 channels at a time. Two taps are multiplied into 16 bits and added to 32,
 * unless a weight is -128: two products of -128 * -128 do not fit. UINT8 is taken 128 lower, and
 * 128 times the sum of the weights is part of the start. Windows of 3 x 3 inside the image's
 * columns read their nine pixels from three row pointers; all others list the address of every tap
 * first. */
#include "loops.h"

#if NK_HAS_NEON

#include "stage_neon.h"

#define LANES 16
#define PACK 8 /* channels side by side in the packed weights */
#define MAX_TAPS \
    128 /* 2 KiB of weights and 1 KiB of addresses; larger windows are left to the definition */

/* 16 channels: what their pixels share. */
typedef struct {
    const nk_operand *in, *out;
    const nk_depthwise_conv2d_params *p;
    nk_leave leave;
    uint32_t taps;
    uint8x16_t toggle;
    int paired;
    int32x4_t start[4];
    int8x16_t weights[MAX_TAPS];
    uint8_t absent[LANES]; /* a pixel outside the image */
} block;

/* A row under the window, from the block's first channel on; one outside the image stands still on
 * the absent pixel. */
typedef struct {
    const uint8_t *at;
    size_t step;
} row;

typedef struct {
    int32x4_t v[4];
} sums;

NK_INLINE int8x16_t bytes_of(const block *b, const uint8_t *at, const int part) {
    if (!part) return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(at), b->toggle));
    uint8_t bytes[LANES] = {0};
    memcpy(bytes, at, b->leave.count);
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(bytes), b->toggle));
}

NK_INLINE void collect(sums *s, int16x8_t low, int16x8_t high) {
    s->v[0] = vaddw_s16(s->v[0], vget_low_s16(low));
    s->v[1] = vaddw_high_s16(s->v[1], low);
    s->v[2] = vaddw_s16(s->v[2], vget_low_s16(high));
    s->v[3] = vaddw_high_s16(s->v[3], high);
}

NK_INLINE void one_tap(sums *s, int8x16_t x, int8x16_t w) {
    collect(s, vmull_s8(vget_low_s8(x), vget_low_s8(w)), vmull_high_s8(x, w));
}

NK_INLINE void two_taps(sums *s, int8x16_t x0, int8x16_t w0, int8x16_t x1, int8x16_t w1,
                        const int paired) {
    int16x8_t low = vmull_s8(vget_low_s8(x0), vget_low_s8(w0)), high = vmull_high_s8(x0, w0);
    if (paired) {
        low = vmlal_s8(low, vget_low_s8(x1), vget_low_s8(w1));
        high = vmlal_high_s8(high, x1, w1);
    }
    collect(s, low, high);
    if (!paired) one_tap(s, x1, w1);
}

NK_INLINE void leave(const block *b, const sums *s, uint8_t *to, const int part, const int form) {
    const nk_leave *k = &b->leave;
    uint8_t bytes[LANES];
    if (form == NK_DEFINITION) {
        int32_t acc[LANES];
        for (int i = 0; i < 4; ++i) vst1q_s32(acc + 4 * i, s->v[i]);
        nk_leave_slowly(k, acc, k->count, to);
        return;
    }
    const int plain = form == NK_PLAIN;
    uint8x16_t v = nk_bytes16(&k->clamps[plain], nk_rescale4(&k->lanes[0], s->v[0], plain),
                              nk_rescale4(&k->lanes[1], s->v[1], plain),
                              nk_rescale4(&k->lanes[2], s->v[2], plain),
                              nk_rescale4(&k->lanes[3], s->v[3], plain), plain, 0);
    if (k->stage->lut) v = nk_look_up16(k->stage->lut, v);
    if (!part) {
        vst1q_u8(to, v);
        return;
    }
    vst1q_u8(bytes, v);
    memcpy(to, bytes, k->count);
}

/* `count` pixels of a 3 x 3 window whose columns all lie inside; `r` points to the first one's left
 * column. */
NK_INLINE void inside(const block *b, const row r[3], uint32_t count, uint8_t *to, const int part,
                      const int form) {
    int8x16_t w[9];
#pragma GCC unroll 9
    for (int t = 0; t < 9; ++t) w[t] = b->weights[t];
    const sums start = {{b->start[0], b->start[1], b->start[2], b->start[3]}};
    const size_t stride = (size_t)b->p->stride_w, pixel = b->out->pixel;
    const uint8_t *r0 = r[0].at, *r1 = r[1].at, *r2 = r[2].at;
    const size_t s0 = r[0].step, s1 = r[1].step, s2 = r[2].step;
#define AT(row, column) bytes_of(b, r##row + (column) * s##row, part)
    for (uint32_t i = 0; i < count; ++i, to += pixel) {
        sums s = start;
        two_taps(&s, AT(0, 0), w[0], AT(0, 1), w[1], 1);
        two_taps(&s, AT(0, 2), w[2], AT(1, 0), w[3], 1);
        two_taps(&s, AT(1, 1), w[4], AT(1, 2), w[5], 1);
        two_taps(&s, AT(2, 0), w[6], AT(2, 1), w[7], 1);
        one_tap(&s, AT(2, 2), w[8]);
        leave(b, &s, to, part, form);
        r0 += stride * s0, r1 += stride * s1, r2 += stride * s2;
    }
#undef AT
}

/* One pixel from the addresses of its taps. */
NK_INLINE void any_window(const block *b, const uint8_t *const *taps, uint8_t *to, const int part,
                          const int paired) {
    sums s = {{b->start[0], b->start[1], b->start[2], b->start[3]}};
    uint32_t t = 0;
    for (; t + 2 <= b->taps; t += 2)
        two_taps(&s, bytes_of(b, taps[t], part), b->weights[t], bytes_of(b, taps[t + 1], part),
                 b->weights[t + 1], paired);
    if (t < b->taps) one_tap(&s, bytes_of(b, taps[t], part), b->weights[t]);
    if (b->leave.form == NK_PLAIN) leave(b, &s, to, part, NK_PLAIN);
    else if (b->leave.form == NK_GENERAL) leave(b, &s, to, part, NK_GENERAL);
    else leave(b, &s, to, part, NK_DEFINITION);
}

/* Output columns [x, last), tap by tap. */
static void listed(const block *b, const row *rows, int32_t x, int32_t last, uint8_t *to) {
    const nk_depthwise_conv2d_params *p = b->p;
    for (; x < last; ++x, to += b->out->pixel) {
        const uint8_t *taps[MAX_TAPS];
        uint32_t t = 0;
        for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
            int32_t at = x * p->stride_w - p->pad_left;
            for (int32_t kx = 0; kx < p->kernel_w; ++kx, at += p->dilation_w)
                taps[t++] = (uint32_t)at < b->in->width ? rows[ky].at + (size_t)at * rows[ky].step
                                                        : b->absent;
        }
        const int part = b->leave.count < LANES;
        if (part) any_window(b, taps, to, 1, 0);
        else if (b->paired) any_window(b, taps, to, 0, 1);
        else any_window(b, taps, to, 0, 0);
    }
}

/* Columns of the output whose whole window lies inside the image: [first, last). */
static void inner_columns(const block *b, int32_t *first, int32_t *last) {
    const nk_depthwise_conv2d_params *p = b->p;
    const int32_t width = (int32_t)b->out->width, room = (int32_t)b->in->width - 3 + p->pad_left;
    *first = nk_min((p->pad_left + p->stride_w - 1) / p->stride_w, width);
    *last = nk_max(*first, room < 0 ? 0 : nk_min(room / p->stride_w + 1, width));
}

static void output_row(const block *b, uint32_t image, int32_t y) {
    const nk_depthwise_conv2d_params *p = b->p;
    const nk_operand *in = b->in, *out = b->out;
    row rows[MAX_TAPS];
    for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int there = iy >= 0 && (uint32_t)iy < in->height;
        rows[ky].at = there ? nk_row(in, image, iy) + b->leave.channel : b->absent;
        rows[ky].step = there ? in->pixel : 0;
    }
    uint8_t *to = nk_row(out, image, y) + b->leave.channel;
    int32_t first = 0, last = 0;
    if (p->kernel_h == 3 && p->kernel_w == 3 && p->dilation_w == 1 && b->paired)
        inner_columns(b, &first, &last);
    listed(b, rows, 0, first, to);
    if (first < last) {
        const int32_t at = first * p->stride_w - p->pad_left;
        for (int ky = 0; ky < 3; ++ky) rows[ky].at += (size_t)at * rows[ky].step;
        uint8_t *here = to + (size_t)first * out->pixel;
        const uint32_t count = (uint32_t)(last - first);
        const int part = b->leave.count < LANES, form = b->leave.form;
        if (!part && form == NK_PLAIN) inside(b, rows, count, here, 0, NK_PLAIN);
        else if (form == NK_PLAIN) inside(b, rows, count, here, 1, NK_PLAIN);
        else if (form == NK_GENERAL) inside(b, rows, count, here, 1, NK_GENERAL);
        else inside(b, rows, count, here, 1, NK_DEFINITION);
        for (int ky = 0; ky < 3; ++ky) rows[ky].at -= (size_t)at * rows[ky].step;
    }
    listed(b, rows, last, (int32_t)out->width, to + (size_t)last * out->pixel);
}

/* Weights of the block's channels tap by tap, whether one is -128, and the start of the sums. */
static void fill_block(block *b, const int8_t *packed, uint32_t channel) {
    const uint32_t left = b->out->channels - channel, count = left < LANES ? left : LANES;
    const int8_t *low = packed + (size_t)channel * b->taps, *high = low + (size_t)PACK * b->taps;
    int32x4_t total[4];
    int8x16_t least = vdupq_n_s8(0);
    for (int i = 0; i < 4; ++i) total[i] = vdupq_n_s32(0);
    for (uint32_t t = 0; t < b->taps; ++t) {
        const int8x8_t none = vdup_n_s8(0);
        const int8x16_t w =
            vcombine_s8(vld1_s8(low + t * PACK), count > PACK ? vld1_s8(high + t * PACK) : none);
        const int16x8_t even = vmovl_s8(vget_low_s8(w)), odd = vmovl_high_s8(w);
        b->weights[t] = w;
        least = vminq_s8(least, w);
        total[0] = vaddw_s16(total[0], vget_low_s16(even));
        total[1] = vaddw_high_s16(total[1], even);
        total[2] = vaddw_s16(total[2], vget_low_s16(odd));
        total[3] = vaddw_high_s16(total[3], odd);
    }
    b->paired = vminvq_s8(least) != -128;
    nk_leave_by(&b->leave, channel, count, 4);
    for (int i = 0; i < 4; ++i) {
        const int32x4_t moved = nk_flip(b->in) ? vdupq_n_s32(0) : vshlq_n_s32(total[i], 7);
        b->start[i] = nk_wrap_add4(b->leave.bias[i], moved);
    }
}

int nk_depthwise_conv2d_neon(const nk_call *call, const nk_stage *stage) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_depthwise_conv2d_params *p =
        (const nk_depthwise_conv2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D_INPUT],
                     *out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT];
    if (call->units != PACK || p->depth_multiplier != 1 || p->weights_zero != 0) return 0;
    if ((uint64_t)p->kernel_h * (uint32_t)p->kernel_w > MAX_TAPS) return 0;
    if (!nk_zero_is_byte(in, p->input_zero)) return 0;
    const int8_t *weights = (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS].data;
    block b; /* filled part by part: clearing it would cost as much as a small call */
    b.in = in, b.out = out, b.p = p;
    b.taps = (uint32_t)p->kernel_h * (uint32_t)p->kernel_w;
    b.toggle = vdupq_n_u8(nk_flip(in) ? 0 : 0x80);
    memset(b.absent, (uint8_t)p->input_zero, sizeof b.absent);
    nk_leave_start(&b.leave, stage, out->dtype == NEUTRON_DTYPE_INT8);
    for (uint32_t channel = 0; channel < out->channels; channel += LANES) {
        fill_block(&b, weights, channel);
        for (uint32_t image = 0; image < out->batch; ++image)
            for (int32_t y = call->row0; y < call->row1; ++y) output_row(&b, image, y);
    }
    return 1;
}

#endif
