/* depthwise_conv2d eight channels at a time, on the bytes of the input where they lie; the weights
 * become numbers of 16 bits once per call. A vector's even lanes make four sums, its odd lanes the
 * other four.
 *
 *   8 bytes of a tap  x  8 weights  ->  4 sums of channels 0, 2, 4, 6  and  4 of 1, 3, 5, 7
 */
#include "loops.h"
#include "stage_helium.h"

#if NK_HAS_HELIUM

/* Most taps and rows of a window, and channels that are made together. */
enum { TAPS = 49, ROWS = 16, LANES = 8 };

/* Eight numbers, one of each channel. */
typedef struct {
    int32x4_t even, odd;
} sums;

/* Eight channels of a call. */
typedef struct {
    const nk_call *call;
    const nk_stage *stage;
    const nk_operand *in, *out;
    nk_window window;
    int16_t absent;           /* the input's zero point */
    bool is_signed, is_right; /* the inputs' type, the outputs' form */
    int32_t first, last;      /* output columns whose windows lie inside the image */
    uint32_t channel, count;  /* eight, or those that are left */
    mve_pred16_t here;        /* their lanes */
    sums biases, multipliers, shifts;
    int16_t weights[TAPS][LANES];
} lanes;

/* Rows [from, to) of a window that lie inside the image. */
typedef struct {
    int32_t from, to;
    const uint8_t *at[ROWS]; /* their first pixels */
    sums begin;              /* biases and what the other rows add */
} window_rows;

/* Eight words from `at` on, of a table that is padded to fours. */
static sums every_other(uint32_t count, const uint8_t *at) {
    const uint32x4_t steps = vshlq_n_u32(vidupq_n_u32(0, 1), 3);
    const mve_pred16_t there = count > 4 ? 0xFFFF : vctp32q(2);
    const int32_t *from = (const int32_t *)(const void *)at;
    return (sums){vldrwq_gather_offset_z_s32(from, steps, there),
                  vldrwq_gather_offset_z_s32(from + 1, steps, there)};
}

static void load_weights(lanes *l, int32_t weights_zero) {
    const nk_window *w = &l->window;
    const uint32_t units = l->call->units, taps = (uint32_t)(w->kernel_h * w->kernel_w);
    const int8_t *from = (const int8_t *)l->call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS].data;
    for (uint32_t m = 0; m < l->count; m += 4) {
        const uint32_t channel = l->channel + m, block = channel / units * units;
        const int8_t *at = from + (size_t)block * taps + channel % units;
        for (uint32_t tap = 0; tap < taps; ++tap, at += units) {
            const int32x4_t four = vsubq_n_s32(vldrbq_s32(at), weights_zero);
            vstrhq_s32(l->weights[tap] + m, four);
        }
    }
}

static inline int16x8_t load(const lanes *l, const uint8_t *from, bool whole) {
    if (whole) return vldrbq_s16((const int8_t *)from);
    return l->is_signed ? vldrbq_z_s16((const int8_t *)from, l->here)
                        : vreinterpretq_s16_u16(vldrbq_z_u16(from, l->here));
}

static inline sums with_product(sums s, int16x8_t inputs, int16x8_t weights) {
    return (sums){vaddq_s32(s.even, vmullbq_int_s16(inputs, weights)),
                  vaddq_s32(s.odd, vmulltq_int_s16(inputs, weights))};
}

/* Store the outputs of one pixel. */
static inline void finish(const lanes *l, sums s, bool whole, uint8_t *to) {
    const nk_stage *stage = l->stage;
    if (!l->is_right) {
        int32_t all[LANES];
        const int32x4x2_t both = {{s.even, s.odd}};
        vst2q_s32(all, both);
        for (uint32_t m = 0; m < l->count; ++m)
            to[m] = nk_stage_output(stage, l->channel + m, all[m]);
        return;
    }
    const int32x4_t even = nk_four_right(l->multipliers.even, l->shifts.even, s.even),
                    odd = nk_four_right(l->multipliers.odd, l->shifts.odd, s.odd);
    const int32x4_t low = nk_four_clamped(vaddq_n_s32(even, stage->zero), stage->low, stage->high),
                    high = nk_four_clamped(vaddq_n_s32(odd, stage->zero), stage->low, stage->high);
    const int16x8_t both = vmovntq_s32(vreinterpretq_s16_s32(low), high);
    if (whole) vstrbq_s16((int8_t *)to, both);
    else vstrbq_p_s16((int8_t *)to, both, l->here);
}

/* Taps [kx, end) of a row of a window, outside the image. */
static inline sums with_absent(const lanes *l, sums s, const int16_t (*weights)[LANES], int32_t kx,
                               int32_t end) {
    const int16x8_t absent = vdupq_n_s16(l->absent);
    for (; kx < end; ++kx) s = with_product(s, absent, vld1q_s16(weights[kx]));
    return s;
}

/* One pixel, of any window; `whole`: of eight channels of INT8. */
static inline __attribute__((always_inline)) void pixel_of(const lanes *l, const window_rows *rows,
                                                           int32_t x, bool whole, uint8_t *to) {
    const nk_window *w = &l->window;
    const size_t step = (size_t)w->dilation_w * l->in->pixel;
    const int32_t left = x * w->stride_w - w->pad_left, width = (int32_t)l->in->width;
    int32_t first = 0, last = w->kernel_w; /* taps inside the image */
    while (first < last && left + first * w->dilation_w < 0) ++first;
    while (first < last && left + (last - 1) * w->dilation_w >= width) --last;
    const ptrdiff_t offset = (ptrdiff_t)(left + first * w->dilation_w) * (ptrdiff_t)l->in->pixel;
    sums s = rows->begin;
    for (int32_t ky = rows->from; ky < rows->to; ++ky) {
        const int16_t (*weights)[LANES] = &l->weights[ky * w->kernel_w];
        const uint8_t *from = rows->at[ky] + offset;
        s = with_absent(l, s, weights, 0, first);
        for (int32_t kx = first; kx < last; ++kx, from += step)
            s = with_product(s, load(l, from, whole), vld1q_s16(weights[kx]));
        s = with_absent(l, s, weights, last, w->kernel_w);
    }
    finish(l, s, whole, to);
}

__attribute__((noinline)) static void pixels_of(const lanes *l, const window_rows *rows, int32_t x,
                                                int32_t end, uint8_t *to) {
    for (; x < end; ++x, to += l->out->pixel) pixel_of(l, rows, x, false, to);
}

__attribute__((noinline)) static void whole_pixels_of(const lanes *l, const window_rows *rows,
                                                      int32_t x, int32_t end, uint8_t *to) {
    for (; x < end; ++x, to += l->out->pixel) pixel_of(l, rows, x, true, to);
}

/* Pixels [x, end) of eight channels of INT8 whose windows lie inside the image, two at a time. */
static inline __attribute__((always_inline)) void twos_of(const lanes *l, const window_rows *rows,
                                                          int32_t x, int32_t end, int32_t taps,
                                                          uint8_t *to) {
    const nk_window *w = &l->window;
    const size_t step = (size_t)w->dilation_w * l->in->pixel;
    const size_t stride = (size_t)w->stride_w * l->in->pixel;
    size_t offset = (size_t)(x * w->stride_w - w->pad_left) * l->in->pixel;
    for (; x + 1 < end; x += 2, offset += 2 * stride, to += 2 * l->out->pixel) {
        sums first = rows->begin, second = rows->begin;
        for (int32_t ky = rows->from; ky < rows->to; ++ky) {
            const int16_t (*weights)[LANES] = &l->weights[ky * taps];
            const uint8_t *from = rows->at[ky] + offset;
            for (int32_t kx = 0; kx < taps; ++kx, from += step) {
                const int16x8_t weight = vld1q_s16(weights[kx]);
                first = with_product(first, load(l, from, true), weight);
                second = with_product(second, load(l, from + stride, true), weight);
            }
        }
        finish(l, first, true, to);
        finish(l, second, true, to + l->out->pixel);
    }
}

/* The rows of the window of output row y. */
static void set_rows(const lanes *l, uint32_t image, int32_t y, window_rows *rows) {
    const nk_window *w = &l->window;
    int32_t iy = y * w->stride_h - w->pad_top;
    rows->from = rows->to = 0;
    rows->begin = l->biases;
    for (int32_t ky = 0; ky < w->kernel_h; ++ky, iy += w->dilation_h) {
        if (iy >= 0 && (uint32_t)iy < l->in->height) {
            if (rows->to == 0) rows->from = ky;
            rows->at[ky] = nk_row(l->in, image, iy) + l->channel;
            rows->to = ky + 1;
            continue;
        }
        rows->begin = with_absent(l, rows->begin, &l->weights[ky * w->kernel_w], 0, w->kernel_w);
    }
}

/* Pixels [x, end), whose windows lie inside the image. */
__attribute__((noinline)) static void inner_of(const lanes *l, const window_rows *rows, int32_t x,
                                               int32_t end, uint8_t *to) {
    if (l->window.kernel_w == 3) twos_of(l, rows, x, end, 3, to);
    else twos_of(l, rows, x, end, l->window.kernel_w, to);
}

/* Of an odd number of inner pixels the last but one is made twice, which takes less than one alone.
 */
static void row_of(const lanes *l, const window_rows *rows, uint8_t *to) {
    const int32_t width = (int32_t)l->out->width, first = l->first, last = l->last;
    const size_t pixel = l->out->pixel;
    if (!l->is_signed || l->count < LANES) {
        pixels_of(l, rows, 0, width, to);
        return;
    }
    const int32_t inner = last - first, end = inner > 1 ? last : first;
    whole_pixels_of(l, rows, 0, first, to);
    if (inner > 1) inner_of(l, rows, first, last, to + (size_t)first * pixel);
    if (inner > 1 && inner % 2) inner_of(l, rows, last - 2, last, to + (size_t)(last - 2) * pixel);
    whole_pixels_of(l, rows, end, width, to + (size_t)end * pixel);
}

/* The rows of a call, for eight of its channels; false when its time is over. */
static bool rows_of(const lanes *l) {
    window_rows rows;
    for (uint32_t image = 0; image < l->out->batch; ++image)
        for (int32_t y = l->call->row0; y < l->call->row1; ++y) {
            if (nk_stopped(l->call)) return false;
            set_rows(l, image, y, &rows);
            row_of(l, &rows, nk_row(l->out, image, y) + l->channel);
        }
    return true;
}

static void set_columns(lanes *l) {
    const nk_window *w = &l->window;
    const int32_t width = (int32_t)l->out->width,
                  room = (int32_t)l->in->width - 1 - (w->kernel_w - 1) * w->dilation_w +
                         w->pad_left; /* of the first column of a window */
    l->first = nk_min((w->pad_left + w->stride_w - 1) / w->stride_w, width);
    l->last = nk_max(room < 0 ? 0 : nk_min(room / w->stride_w + 1, width), l->first);
}

static void set_channels(lanes *l, uint32_t channel, int32_t weights_zero) {
    const uint32_t left = l->out->channels - channel;
    l->channel = channel;
    l->count = left < LANES ? left : LANES;
    l->here = vctp16q(l->count);
    const uint8_t *at = l->stage->table + 4 * (size_t)channel;
    l->biases = every_other(l->count, at);
    l->multipliers = every_other(l->count, at + l->stage->column);
    l->shifts = every_other(l->count, at + 2 * l->stage->column);
    load_weights(l, weights_zero);
}

int nk_helium_depthwise_conv2d(const nk_call *call, const nk_stage *stage) {
    const nk_depthwise_conv2d_params *p =
        (const nk_depthwise_conv2d_params *)(const void *)call->params;
    const uint64_t taps = (uint64_t)p->kernel_h * (uint32_t)p->kernel_w;
    lanes l; /* not cleared: it is large */
    l.call = call;
    l.stage = stage;
    l.in = &call->operands[NK_DEPTHWISE_CONV2D_INPUT];
    l.out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT];
    l.window = *nk_window_first(call);
    l.absent = (int16_t)p->input_zero;
    if (taps > TAPS || p->kernel_h > ROWS || p->depth_multiplier != 1 || call->units % 4) return 0;
    l.is_signed = nk_flip(l.in) != 0;
    l.is_right = nk_stage_is_right(stage, l.out->channels);
    set_columns(&l);
    for (uint32_t channel = 0; channel < l.out->channels; channel += LANES) {
        set_channels(&l, channel, p->weights_zero);
        if (!rows_of(&l)) break;
    }
    return 1;
}

#endif
