/* depthwise_conv2d four channels at a time, by rows: of the input rows under an output row each
 * byte becomes half of a pair once, and taps outside the image its zero point; the weights become
 * pairs once per call. The next output row finds most of its rows there already.
 *
 *   bytes of a row, 4 of each pixel  ->  pairs [columns]  x  weights  ->  4 sums per pixel
 */
#include "lane_sums_dsp.h"
#include "loops.h"
#include "stage_dsp.h"

#if NK_HAS_DSP

/* Most taps and rows of a window, and pixels of all its rows that are pairs at one time. */
enum { TAPS = 49, ROWS = 16, PIXELS = 128 };

/* Four channels of a call. */
typedef struct {
    const nk_call *call;
    nk_stage stage;
    nk_word_stage word;
    const nk_operand *in, *out;
    nk_window window;
    nk_lane_pairs absent;     /* the input's zero point */
    uint32_t columns;         /* of each row that are pairs */
    int32_t at_once;          /* output columns that take so many */
    bool is_short, is_signed; /* the outputs' form, the inputs' type */
    uint32_t channel, count;  /* four, or those that are left */
    int32_t held[ROWS];       /* which row each place holds, -1: none */
    nk_channel_scale scale[4];
    int32_t bias[4]; /* before the weights */
    nk_lane_pairs weights[TAPS];
    nk_lane_pairs pairs[PIXELS]; /* a place for each row of the window */
} lanes;

_Static_assert(offsetof(lanes, weights) == offsetof(lanes, bias) + 4 * sizeof(int32_t),
               "the loops read biases, then weights");

static void load_channels(lanes *l, const int8_t *weights, uint32_t step, uint32_t taps,
                          int32_t weights_zero) {
    const int16x2_t zeros = nk_twice(weights_zero);
    for (uint32_t tap = 0; tap < taps; ++tap, weights += step) {
        const uint32_t word = nk_word(weights);
        l->weights[tap].even = __ssub16(nk_even_signed(word), zeros);
        l->weights[tap].odd = __ssub16(nk_odd_signed(word), zeros);
    }
    for (uint32_t m = 0; m < 4; ++m) { /* tables are padded */
        const uint8_t *at = l->stage.table + 4 * (size_t)(l->channel + m);
        l->bias[m] = nk_load32(at);
        if (l->is_short)
            l->scale[m] = nk_channel_scale_at(&l->word, at + l->stage.column, l->stage.column);
    }
}

static nk_lane_pairs *fill(nk_lane_pairs *to, int32_t count, nk_lane_pairs with) {
    for (; count > 0; --count) *to++ = with;
    return to;
}

/* Four channels of `count` pixels. Functions of their own, like the others below, so that each has
 * the registers it needs. */
__attribute__((noinline)) static nk_lane_pairs *expand_signed(const uint8_t *from, size_t step,
                                                              int32_t count, nk_lane_pairs *to) {
    for (nk_lane_pairs *const end = to + count; to < end; ++to, from += step) {
        const uint32_t word = nk_word(from);
        *to = (nk_lane_pairs){nk_even_signed(word), nk_odd_signed(word)};
    }
    return to;
}

/* The same of either type, for the last channels too: no byte behind them is read. */
__attribute__((noinline)) static nk_lane_pairs *expand_any(const lanes *l, const uint8_t *from,
                                                           int32_t count, nk_lane_pairs *to) {
    for (nk_lane_pairs *const end = to + count; to < end; ++to, from += l->in->pixel) {
        uint32_t word = 0;
        memcpy(&word, from, l->count);
        to->even = l->is_signed ? nk_even_signed(word) : nk_even_unsigned(word);
        to->odd = l->is_signed ? nk_odd_signed(word) : nk_odd_unsigned(word);
    }
    return to;
}

/* Columns from x0 on of one input row, which may lie outside the image. */
__attribute__((noinline)) static void expand_row(const lanes *l, uint32_t image, int32_t iy,
                                                 int32_t x0, nk_lane_pairs *to) {
    const int32_t columns = (int32_t)l->columns, width = (int32_t)l->in->width;
    const int32_t first = x0 < 0 ? nk_min(-x0, columns) : 0,
                  last = nk_min(columns, nk_max(width - x0, first));
    if (iy < 0 || (uint32_t)iy >= l->in->height || first == last) {
        fill(to, columns, l->absent);
        return;
    }
    const uint8_t *from =
        nk_row(l->in, image, iy) + (size_t)(x0 + first) * l->in->pixel + l->channel;
    to = fill(to, first, l->absent);
    to = l->is_signed && l->count == 4 ? expand_signed(from, l->in->pixel, last - first, to)
                                       : expand_any(l, from, last - first, to);
    fill(to, columns - last, l->absent);
}

/* Store four outputs, or those that are left. */
static inline void finish(const lanes *l, const int32_t *sums, uint8_t *to) {
    if (!l->is_short || l->count < 4) {
        for (uint32_t m = 0; m < l->count; ++m)
            to[m] = nk_stage_output(&l->stage, l->channel + m, sums[m]);
        return;
    }
    for (uint32_t m = 0; m < 4; ++m) to[m] = nk_channel_output(&l->stage, l->scale[m], sums[m]);
}

/* One pixel of any window. */
__attribute__((noinline)) static void pixel_of(const lanes *l, const nk_lane_pairs *const *rows,
                                               size_t offset, uint8_t *to) {
    int32_t sums[4] = {l->bias[0], l->bias[1], l->bias[2], l->bias[3]};
    const size_t step = (size_t)l->window.dilation_w;
    const nk_lane_pairs *weights = l->weights;
    for (const nk_lane_pairs *const *end = rows + l->window.kernel_h; rows < end; ++rows) {
        const nk_lane_pairs *from = (const nk_lane_pairs *)((const uint8_t *)*rows + offset);
        const nk_lane_pairs *const last = weights + l->window.kernel_w;
        for (; weights < last; ++weights, from += step) {
            sums[0] = __smlabb(from->even, weights->even, sums[0]);
            sums[1] = __smlabb(from->odd, weights->odd, sums[1]);
            sums[2] = __smlatt(from->even, weights->even, sums[2]);
            sums[3] = __smlatt(from->odd, weights->odd, sums[3]);
        }
    }
    finish(l, sums, to);
}

/* Whether there is a loop for two pixels at once; it stores whole words. */
static bool goes_by_twos(const lanes *l) {
    const nk_window *w = &l->window;
    return l->is_short && l->count == 4 && w->kernel_h == 3 && w->kernel_w == 3 &&
           w->dilation_w == 1 && w->stride_w <= 2;
}

/* Pixels from `first` on of one output row, two at a time. */
static void twos_of(const lanes *l, const nk_lane_pairs *const *rows, int32_t first, uint32_t twos,
                    uint8_t *to) {
    const int32_t stride = l->window.stride_w;
    nk_lane_row row = {.step = 2 * (uint32_t)stride * sizeof(nk_lane_pairs),
                       .biases = l->bias,
                       .scales = l->scale,
                       .low = l->word.low,
                       .high = l->word.high,
                       .to = to + (size_t)first * l->out->pixel,
                       .pitch = l->out->pixel,
                       .twos = twos};
    for (uint32_t ky = 0; ky < 3; ++ky) row.rows[ky] = rows[ky] + (size_t)(first * stride);
    if (stride == 1) nk_lane_row3x3(&row);
    else nk_lane_row3x3_by2(&row);
}

/* `count` pixels of one output row. Of an odd number the last but one is made twice, which takes
 * less than one alone. */
static void pixels_of(const lanes *l, const nk_lane_pairs *const *rows, int32_t count,
                      uint8_t *to) {
    if (count > 1 && goes_by_twos(l)) {
        twos_of(l, rows, 0, (uint32_t)count / 2, to);
        if (count % 2) twos_of(l, rows, count - 2, 1, to);
        return;
    }
    const size_t step = (size_t)l->window.stride_w * sizeof(nk_lane_pairs);
    for (size_t offset = 0; count; --count, offset += step, to += l->out->pixel)
        pixel_of(l, rows, offset, to);
}

/* Output columns [x, x + count) of one row. */
static void row_of(lanes *l, uint32_t image, int32_t y, int32_t x, int32_t count) {
    const nk_window *w = &l->window;
    const nk_lane_pairs *rows[ROWS];
    const int32_t x0 = x * w->stride_w - w->pad_left;
    int32_t at = y * w->stride_h; /* counted from the first row of padding */
    for (int32_t ky = 0; ky < w->kernel_h; ++ky, at += w->dilation_h) {
        const int32_t place = w->dilation_h == 1 ? at % w->kernel_h : ky;
        nk_lane_pairs *pairs = l->pairs + (size_t)place * l->columns;
        if (l->held[place] != at) expand_row(l, image, at - w->pad_top, x0, pairs);
        l->held[place] = at;
        rows[ky] = pairs;
    }
    uint8_t *to = nk_row(l->out, image, y) + (size_t)x * l->out->pixel + l->channel;
    pixels_of(l, rows, count, to);
}

/* The rows of a call, for four of its channels; false when its time is over. */
static bool rows_of(lanes *l) {
    const int32_t width = (int32_t)l->out->width;
    for (uint32_t image = 0; image < l->out->batch; ++image)
        for (int32_t x = 0; x < width; x += l->at_once) {
            const int32_t count = nk_min(l->at_once, width - x);
            for (int32_t ky = 0; ky < l->window.kernel_h; ++ky) l->held[ky] = -1;
            for (int32_t y = l->call->row0; y < l->call->row1; ++y) {
                if (nk_stopped(l->call)) return false;
                row_of(l, image, y, x, count);
            }
        }
    return true;
}

/* Divide the pixels' room among the rows of a window; false where it is too wide. */
static bool set_columns(lanes *l) {
    const nk_window *w = &l->window;
    const int32_t room = PIXELS / w->kernel_h, reach = (w->kernel_w - 1) * w->dilation_w + 1;
    if (reach > room) return false;
    l->at_once = nk_min((room - reach) / w->stride_w + 1, (int32_t)l->out->width);
    l->columns = (uint32_t)((l->at_once - 1) * w->stride_w + reach);
    return true;
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
    l.absent = (nk_lane_pairs){nk_twice(p->input_zero), nk_twice(p->input_zero)};
    if (taps > TAPS || p->kernel_h > ROWS || p->depth_multiplier != 1 || call->units % 4) return 0;
    if (!set_columns(&l)) return 0;
    const uint32_t channels = l.out->channels;
    l.is_signed = nk_flip(l.in) != 0;
    l.word = nk_make_word_stage(stage);
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
