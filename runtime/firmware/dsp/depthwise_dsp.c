/* depthwise_conv2d four channels at a time: their weights become pairs of 16-bit numbers once per
 * call. Windows inside the image are read in place; others are first copied, with the input's zero
 * point where they leave it.
 */
#include "lane_sums_dsp.h"
#include "loops.h"
#include "stage_dsp.h"

#if NK_HAS_DSP

enum { TAPS = 49, ROWS = 16 };

/* Four channels of a call. */
typedef struct {
    const nk_call *call;
    nk_stage stage;
    nk_pair_stage pair;
    const nk_operand *in, *out;
    nk_window window;
    nk_lane_sums sums;
    nk_lane_window inside, copied; /* a window in place, and as a copy */
    uint32_t absent;               /* four times the input's zero point */
    int32_t whole_from, whole_to;  /* output columns whose windows have all columns */
    bool is_short;                 /* the outputs' form */
    uint32_t channel, count;       /* four, or those that are left */
    int32_t bias[4];
    nk_channel_scale scale[4];
    nk_lane_weights weights[TAPS];
} lanes;

static void load_channels(lanes *l, const int8_t *weights, uint32_t step, uint32_t taps,
                          int32_t weights_zero) {
    const int16x2_t zeros = nk_twice(weights_zero);
    for (uint32_t tap = 0; tap < taps; ++tap, weights += step) {
        const uint32_t word = nk_word(weights);
        l->weights[tap].even = __ssub16(nk_even_signed(word), zeros);
        l->weights[tap].odd = __ssub16(nk_odd_signed(word), zeros);
    }
    for (uint32_t m = 0; m < l->count; ++m) {
        l->bias[m] = nk_stage_bias(&l->stage, l->channel + m);
        const size_t place = l->stage.column + 4 * (size_t)(l->channel + m);
        if (l->is_short) l->scale[m] = nk_channel_scale_at(l->stage.table + place, l->stage.column);
    }
}

/* Store four outputs, or those that are left. */
static inline void finish(const lanes *l, const int32_t *sums, uint8_t *to) {
    if (!l->is_short || l->count < 4) {
        for (uint32_t m = 0; m < l->count; ++m)
            to[m] = nk_stage_output(&l->stage, l->channel + m, sums[m]);
        return;
    }
    const nk_channel_scale *s = l->scale;
    const uint32_t even = nk_finish_pair(&l->pair, nk_channel_rescale(s[0], sums[0]),
                                         nk_channel_rescale(s[2], sums[2]));
    const uint32_t odd = nk_finish_pair(&l->pair, nk_channel_rescale(s[1], sums[1]),
                                        nk_channel_rescale(s[3], sums[3]));
    const uint32_t word = (even & 0xFF00FFu) | (odd & 0xFF00FFu) << 8;
    memcpy(to, &word, sizeof word);
}

/* Columns [first, last) of a window that begins in column x0 lie inside the image. */
static nk_span columns_inside(const lanes *l, int32_t x0) {
    const int32_t step = l->window.dilation_w, columns = l->window.kernel_w;
    nk_span inside = {0, columns};
    while (inside.first < columns && x0 + inside.first * step < 0) inside.first++;
    while (inside.last > inside.first && x0 + (inside.last - 1) * step >= (int32_t)l->in->width)
        inside.last--;
    return inside;
}

static uint32_t *fill(uint32_t *to, int32_t count, uint32_t word) {
    for (; count > 0; --count) *to++ = word;
    return to;
}

/* Copy a window that begins in column x0, of rows that are NULL outside the image. A function of
 * its own, like the others below, so that each has the registers it needs. */
__attribute__((noinline)) static void copy_window(const lanes *l, const uint8_t *const *rows,
                                                  int32_t x0, uint32_t *to) {
    const uint32_t absent = l->absent, count = l->count;
    const size_t step = l->inside.step;
    const int32_t columns = l->window.kernel_w;
    const nk_span inside = columns_inside(l, x0);
    const size_t offset =
        (size_t)(x0 + inside.first * l->window.dilation_w) * l->in->pixel + l->channel;
    for (const uint8_t *const *end = rows + l->window.kernel_h; rows < end; ++rows) {
        if (!*rows || inside.first == inside.last) {
            to = fill(to, columns, absent);
            continue;
        }
        to = fill(to, inside.first, absent);
        const uint8_t *from = *rows + offset;
        for (uint32_t *const last = to + (inside.last - inside.first); to < last; from += step)
            if (count == 4) *to++ = nk_word(from);
            else memcpy(to++, from, count);
        to = fill(to, columns - inside.last, absent);
    }
}

__attribute__((noinline)) static void pixel_copied(const lanes *l, const uint8_t *const *rows,
                                                   int32_t x0, uint8_t *to) {
    uint32_t window[TAPS];
    const uint8_t *copies[ROWS];
    int32_t sums[4] = {l->bias[0], l->bias[1], l->bias[2], l->bias[3]};
    for (int32_t ky = 0; ky < l->window.kernel_h; ++ky)
        copies[ky] = (const uint8_t *)(window + ky * l->window.kernel_w);
    copy_window(l, rows, x0, window);
    l->sums(copies, 0, l->weights, &l->copied, sums);
    finish(l, sums, to);
}

/* Output columns [from, to) whose windows lie inside the image, `offset` bytes from a row's start.
 */
__attribute__((noinline)) static uint8_t *pixels_inside(const lanes *l, const uint8_t *const *rows,
                                                        size_t offset, uint32_t count,
                                                        uint8_t *to) {
    const size_t step = (size_t)l->window.stride_w * l->in->pixel, pitch = l->out->pixel;
    const nk_lane_sums add = l->sums;
    for (; count; --count, offset += step, to += pitch) {
        int32_t sums[4] = {l->bias[0], l->bias[1], l->bias[2], l->bias[3]};
        add(rows, offset, l->weights, &l->inside, sums);
        finish(l, sums, to);
    }
    return to;
}

/* One output row. */
static void row_of(const lanes *l, uint32_t image, int32_t y, uint8_t *to) {
    const nk_window *w = &l->window;
    const uint8_t *rows[ROWS];
    bool whole = l->count == 4;
    int32_t iy = y * w->stride_h - w->pad_top;
    for (int32_t ky = 0; ky < w->kernel_h; ++ky, iy += w->dilation_h) {
        const bool there = iy >= 0 && (uint32_t)iy < l->in->height;
        rows[ky] = there ? nk_row(l->in, image, iy) : NULL;
        whole = whole && there;
    }
    to += l->channel;
    int32_t x0 = -w->pad_left;
    for (int32_t x = 0; (uint32_t)x < l->out->width; ++x, x0 += w->stride_w, to += l->out->pixel) {
        if (whole && x == l->whole_from && l->whole_to > x) {
            const uint32_t count = (uint32_t)(l->whole_to - x);
            to = pixels_inside(l, rows, (size_t)x0 * l->in->pixel + l->channel, count, to);
            x += (int32_t)count;
            x0 += (int32_t)count * w->stride_w;
            if ((uint32_t)x >= l->out->width) break;
        }
        pixel_copied(l, rows, x0, to);
    }
}

/* The rows of a call, for four of its channels; false when its time is over. */
static bool rows_of(const lanes *l) {
    for (uint32_t image = 0; image < l->out->batch; ++image)
        for (int32_t y = l->call->row0; y < l->call->row1; ++y) {
            if (nk_stopped(l->call)) return false;
            row_of(l, image, y, nk_row(l->out, image, y));
        }
    return true;
}

static void set_window(lanes *l) {
    const nk_window *w = &l->window;
    const int32_t reach = (w->kernel_w - 1) * w->dilation_w,
                  room =
                      (int32_t)l->in->width - reach + w->pad_left; /* for windows' first column */
    const bool is_signed = nk_flip(l->in) != 0;
    const int32_t width = (int32_t)l->out->width;
    l->whole_from = (w->pad_left + w->stride_w - 1) / w->stride_w;
    l->whole_to = room <= 0 ? 0 : nk_min((room + w->stride_w - 1) / w->stride_w, width);
    l->inside = (nk_lane_window){(uint32_t)w->kernel_h, (uint32_t)w->kernel_w,
                                 (uint32_t)w->dilation_w * l->in->pixel};
    l->copied = (nk_lane_window){(uint32_t)w->kernel_h, (uint32_t)w->kernel_w, 4};
    if (w->kernel_w == 3) l->sums = is_signed ? nk_lane_sums3_signed : nk_lane_sums3_unsigned;
    else l->sums = is_signed ? nk_lane_sums_signed : nk_lane_sums_unsigned;
}

int nk_dsp_depthwise_conv2d(const nk_call *call, const nk_stage *stage) {
    const nk_depthwise_conv2d_params *p =
        (const nk_depthwise_conv2d_params *)(const void *)call->params;
    const int8_t *weights = (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS].data;
    const uint64_t taps = (uint64_t)p->kernel_h * (uint32_t)p->kernel_w;
    lanes l; /* not cleared: it is large */
    l.call = call;
    l.stage = *stage;
    l.in = &call->operands[NK_DEPTHWISE_CONV2D_INPUT];
    l.out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT];
    l.window = *nk_window_first(call);
    l.absent = ((uint32_t)p->input_zero & 0xFFu) * 0x01010101u;
    if (taps > TAPS || p->kernel_h > ROWS || p->depth_multiplier != 1 || call->units % 4) return 0;
    if (nk_value((uint8_t)p->input_zero, nk_flip(l.in)) != p->input_zero) return 0;
    const uint32_t channels = l.out->channels;
    set_window(&l);
    l.pair = nk_make_pair_stage(stage);
    l.is_short = nk_stage_is_short(stage, channels, taps * 255 * 383);
    for (l.channel = 0; l.channel < channels; l.channel += 4) {
        l.count = channels - l.channel < 4 ? channels - l.channel : 4;
        const size_t block = (size_t)(l.channel / call->units) * call->units * (uint32_t)taps;
        load_channels(&l, weights + block + l.channel % call->units, call->units, (uint32_t)taps,
                      p->weights_zero);
        if (!rows_of(&l)) break;
    }
    return 1;
}

#endif
