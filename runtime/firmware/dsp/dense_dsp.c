/* conv2d and fully_connected with SMLAD: the inputs of two output pixels become pairs of 16-bit
 * numbers once and meet the weights of all output channels.
 *
 *   window of two pixels  ->  quads [at most QUADS]  x  weights of 2 channels  ->  4 sums
 *
 * A window of more quads is taken in parts, each with all of up to CHANNELS channels, whose sums
 * are kept meanwhile. Sums wrap, so their order does not matter.
 */
#include "loops.h"
#include "pixel_pairs.h"
#include "products_dsp.h"
#include "stage_dsp.h"

#if NK_HAS_DSP

enum { QUADS = 72, CHANNELS = 32 };

/* What does not change within a call. */
typedef struct {
    const nk_call *call;
    const nk_stage *stage;
    const nk_operand *in, *out;
    nk_window window;
    uint32_t groups, inputs, outputs; /* channels of a group */
    uint32_t tap_quads, quads;        /* of a tap and of the window */
    int32_t flip, input_zero, weights_zero;
    const int8_t *weights;
    size_t block_bytes, group_bytes; /* weights of M output channels, of a group */
    nk_products two, one;
    nk_word_stage word;
    bool is_short;   /* the outputs' form */
    bool thin;       /* a tap is one quad, and the window no more than are expanded at once */
    bool dense_rows; /* taps of a row of the window follow each other */
} dense;

/* `quads` of consecutive bytes. */
static nk_quad *expand(const uint8_t *from, int32_t flip, uint32_t quads, uint32_t pixel,
                       nk_quad *to) {
    nk_quad *const end = to + quads;
    if (flip) {
        for (; to < end; ++to, from += 4) {
            const uint32_t word = nk_word(from);
            to->pixel[pixel].even = nk_even_signed(word);
            to->pixel[pixel].odd = nk_odd_signed(word);
        }
    } else {
        for (; to < end; ++to, from += 4) {
            const uint32_t word = nk_word(from);
            to->pixel[pixel].even = nk_even_unsigned(word);
            to->pixel[pixel].odd = nk_odd_unsigned(word);
        }
    }
    return to;
}

/* One to three bytes. */
static uint32_t some_bytes(const uint8_t *from, uint32_t count) {
    return (uint32_t)from[0] | (count > 1 ? (uint32_t)from[1] << 8 : 0) |
           (count > 2 ? (uint32_t)from[2] << 16 : 0);
}

/* Quads [first, first + quads) of one tap of `count` inputs, of which `left` bytes may be read;
 * NULL: absent. Inputs beyond the last are 0. */
static nk_quad *expand_tap(const dense *d, const uint8_t *from, size_t left, uint32_t first,
                           uint32_t quads, uint32_t pixel, nk_quad *to) {
    const uint32_t whole = d->inputs / 4;
    const int16x2_t absent = nk_twice(d->input_zero);
    uint32_t at = first;
    const uint32_t end = first + quads;
    if (from && at < whole) {
        const uint32_t most = end < whole ? end : whole;
        to = expand(from + 4 * (size_t)at, d->flip, most - at, pixel, to);
        at = most;
    }
    for (; at < whole && at < end; ++at, ++to)
        to->pixel[pixel].even = absent, to->pixel[pixel].odd = absent;
    for (; at < end; ++at, ++to) {
        const uint32_t rest = at == whole ? d->inputs % 4 : 0;
        int16x2_t even = 0, odd = 0;
        if (rest && from) {
            const uint8_t *last = from + 4 * (size_t)whole;
            const uint32_t word = left >= 4 * (size_t)whole + 4
                                      ? nk_word(last) & ((1u << 8 * rest) - 1u)
                                      : some_bytes(last, rest);
            even = d->flip ? nk_even_signed(word) : nk_even_unsigned(word);
            odd = d->flip ? nk_odd_signed(word) : nk_odd_unsigned(word);
        } else if (rest) {
            even = rest > 2 ? absent : (int16x2_t)(absent & 0xFFFF);
            odd = rest > 1 ? (int16x2_t)(absent & 0xFFFF) : 0;
        }
        to->pixel[pixel].even = even, to->pixel[pixel].odd = odd;
    }
    return to;
}

/* The whole window of one pixel, of up to four inputs: a tap is a quad. */
__attribute__((noinline)) static void expand_thin(const dense *d, const nk_pixels *p,
                                                  uint32_t pixel, uint32_t group, nk_quad *to) {
    const nk_window *w = &d->window;
    const nk_operand *in = d->in;
    const int32_t left_x = p->x[pixel] * w->stride_w - w->pad_left, width = (int32_t)in->width;
    const uint32_t mask = UINT32_MAX >> (32 - 8 * d->inputs);
    const uint32_t absent = nk_twice(d->input_zero), step = (uint32_t)w->dilation_w * in->pixel;
    const uint32_t none_even = d->inputs > 2 ? absent : absent & 0xFFFFu,
                   none_odd = d->inputs > 3   ? absent
                              : d->inputs > 1 ? absent & 0xFFFFu
                                              : 0;
    int32_t iy = p->y[pixel] * w->stride_h - w->pad_top;
    for (int32_t ky = 0; ky < w->kernel_h; ++ky, iy += w->dilation_h) {
        const bool there = iy >= 0 && (uint32_t)iy < in->height;
        const uint8_t *row = there ? nk_row(in, p->image, iy) : in->data;
        /* No word is read that ends behind the row. */
        const uint8_t *last = row + (size_t)(width - 1) * in->pixel + in->channels - 4;
        const uint8_t *from = row + (ptrdiff_t)left_x * (ptrdiff_t)in->pixel + group * d->inputs;
        int32_t ix = left_x;
        for (nk_quad *const end = to + w->kernel_w; to < end;
             ++to, from += step, ix += w->dilation_w) {
            uint32_t even = none_even, odd = none_odd;
            if (there && ix >= 0 && ix < width) {
                const uint32_t word =
                    from <= last ? nk_word(from) & mask : some_bytes(from, d->inputs);
                even = (uint32_t)(d->flip ? nk_even_signed(word) : nk_even_unsigned(word));
                odd = (uint32_t)(d->flip ? nk_odd_signed(word) : nk_odd_unsigned(word));
            }
            to->pixel[pixel].even = (int16x2_t)even, to->pixel[pixel].odd = (int16x2_t)odd;
        }
    }
}

/* Quads [first, first + count) of the window of one pixel. */
static void expand_window(const dense *d, const nk_pixels *p, uint32_t pixel, uint32_t group,
                          uint32_t first, uint32_t count, nk_quad *to) {
    const nk_window *w = &d->window;
    const nk_operand *in = d->in;
    uint32_t ky = 0, kx = 0, skip = first;
    if (first) {
        const uint32_t tap = first / d->tap_quads;
        ky = tap / (uint32_t)w->kernel_w;
        kx = tap % (uint32_t)w->kernel_w;
        skip = first % d->tap_quads;
    }
    const int32_t left_x = p->x[pixel] * w->stride_w - w->pad_left;
    int32_t iy = p->y[pixel] * w->stride_h - w->pad_top + (int32_t)ky * w->dilation_h;
    const bool inside = left_x >= 0 && left_x + w->kernel_w <= (int32_t)in->width && d->dense_rows;
    const size_t row_bytes = (size_t)(in->width - 1) * in->pixel + in->channels;
    while (count) {
        const uint8_t *row = iy >= 0 && (uint32_t)iy < in->height ? nk_row(in, p->image, iy) : NULL;
        if (inside && row) {
            const uint32_t start = kx * d->tap_quads + skip;
            const uint32_t here = (uint32_t)w->kernel_w * d->tap_quads - start;
            const uint32_t some = here < count ? here : count;
            to = expand(row + (size_t)left_x * in->pixel + 4 * (size_t)start, d->flip, some, pixel,
                        to);
            count -= some;
        } else {
            for (int32_t ix = left_x + (int32_t)kx * w->dilation_w;
                 kx < (uint32_t)w->kernel_w && count; ++kx, ix += w->dilation_w, skip = 0) {
                const bool there = row && ix >= 0 && (uint32_t)ix < in->width;
                const size_t at = (size_t)ix * in->pixel + (size_t)group * d->inputs;
                const uint32_t here = d->tap_quads - skip, some = here < count ? here : count;
                to = expand_tap(d, there ? row + at : NULL, there ? row_bytes - at : 0, skip, some,
                                pixel, to);
                count -= some;
            }
        }
        kx = 0;
        skip = 0;
        iy += w->dilation_h;
    }
}

/* Sum of the inputs of quads, which the zero point of the weights multiplies. */
static int32_t sum_of(const nk_quad *quads, uint32_t count, uint32_t pixel) {
    const int16x2_t ones = nk_twice(1);
    int32_t sum = 0;
    for (uint32_t at = 0; at < count; ++at) {
        sum = __smlad(quads[at].pixel[pixel].even, ones, sum);
        sum = __smlad(quads[at].pixel[pixel].odd, ones, sum);
    }
    return sum;
}

/* Outputs of `count` channels of one or two pixels. */
static void finish(const dense *d, const nk_pixels *p, size_t channel, uint32_t count,
                   const nk_sums *sums) {
    const uint32_t fours = d->is_short ? count / 4 : 0;
    if (fours) {
        const nk_finish_fours_job job = {.sums = sums->channel[0],
                                         .at = d->stage->table + d->stage->column + 4 * channel,
                                         .column = d->stage->column,
                                         .added = d->word.added,
                                         .to = p->to[0] + channel,
                                         .other = p->to[p->count - 1] + channel,
                                         .fours = fours,
                                         .low = d->word.low,
                                         .high = d->word.high};
        nk_finish_fours(&job);
    }
    for (uint32_t m = 4 * fours; m < count; ++m)
        for (uint32_t pixel = 0; pixel < p->count; ++pixel)
            p->to[pixel][channel + m] =
                nk_stage_output(d->stage, channel + m, sums[m / 2].channel[m % 2][pixel]);
}

/* Subtract the zero point of the weights, times the sum of a pixel's inputs. */
static void correct(const dense *d, const nk_pixels *p, const nk_quad *quads, uint32_t quad_count,
                    uint32_t count, nk_sums *sums) {
    for (uint32_t pixel = 0; pixel < p->count; ++pixel) {
        const uint32_t sum = (uint32_t)sum_of(quads, quad_count, pixel) * (uint32_t)d->weights_zero;
        for (uint32_t m = 0; m < count; ++m)
            sums[m / 2].channel[m % 2][pixel] =
                (int32_t)((uint32_t)sums[m / 2].channel[m % 2][pixel] - sum);
    }
}

/* Blocks of more than two pairs: one pair at a time. */
static void products_of_blocks(nk_products_job *job, nk_products products, uint32_t units,
                               uint32_t length, uint32_t block_bytes) {
    const int8_t *block = job->weights;
    uint32_t unit = 0;
    for (uint32_t pairs = job->pairs; pairs; --pairs) {
        job->weights = block + (size_t)unit * length;
        job->pairs = 1;
        products(job);
        unit += 2;
        if (unit == units) unit = 0, block += block_bytes;
    }
}

/* Up to CHANNELS output channels of a group, from `from` on. */
static void channels_of(const dense *d, const nk_pixels *p, uint32_t group, uint32_t from,
                        uint32_t count, nk_quad *quads, bool *expanded) {
    const uint32_t units = d->call->units, length = d->call->length;
    const nk_products products = p->count == 2 ? d->two : d->one;
    const size_t channel = (size_t)group * d->outputs + from;
    const int8_t *weights =
        d->weights + (size_t)group * d->group_bytes + (size_t)(from / units) * d->block_bytes;
    const int32_t *biases = (const int32_t *)(const void *)(d->stage->table + 4 * channel);
    nk_sums sums[CHANNELS / 2];
    for (uint32_t first = 0; first < d->quads; first += QUADS) {
        const uint32_t left = d->quads - first, here = left < QUADS ? left : QUADS;
        for (uint32_t pixel = 0; pixel < p->count && !*expanded; ++pixel) {
            if (d->thin) expand_thin(d, p, pixel, group, quads);
            else expand_window(d, p, pixel, group, first, here, quads);
        }
        *expanded = d->quads <= QUADS;
        nk_products_job job = {.in = quads,
                               .weights = weights + (size_t)first * units * 4,
                               .quads = here,
                               .biases = first == 0 ? biases : NULL,
                               .sums = sums,
                               .pairs = (count + 1) / 2,
                               .next = {2 * length, (uint32_t)d->block_bytes - 2 * length}};
        if (units == 4) products(&job);
        else products_of_blocks(&job, products, units, length, (uint32_t)d->block_bytes);
        if (d->weights_zero) correct(d, p, quads, here, count, sums);
    }
    finish(d, p, channel, count, sums);
}

static void all_channels(const void *loop, const nk_pixels *p) {
    const dense *d = loop;
    nk_quad quads[QUADS];
    for (uint32_t group = 0; group < d->groups; ++group) {
        bool expanded = false;
        for (uint32_t from = 0; from < d->outputs; from += CHANNELS) {
            const uint32_t left = d->outputs - from;
            channels_of(d, p, group, from, left < CHANNELS ? left : CHANNELS, quads, &expanded);
        }
    }
}

/* Whether the loops know the packing; sets them. */
static bool choose_products(dense *d) {
    const nk_call *call = d->call;
    const bool by4 = call->units == 4 && call->length == 4,
               by8 = call->units == 8 && call->length == 8;
    if ((!by4 && !by8) || (uintptr_t)d->weights % 4) return false;
    d->two = by4 ? nk_products_two_by4 : nk_products_two_by8;
    d->one = by4 ? nk_products_one_by4 : nk_products_one_by8;
    return true;
}

/* Largest sum of products: values of 8 bits and weights less their zero point. */
static uint64_t most_of(const dense *d) {
    return (uint64_t)d->quads * 4 * 255 *
           (128u + (uint32_t)(d->weights_zero < 0 ? -d->weights_zero : d->weights_zero));
}

static int run(dense *d) {
    const nk_window *w = &d->window;
    d->in = &d->call->operands[NK_CONV2D_INPUT];
    d->out = &d->call->operands[NK_CONV2D_OUTPUT];
    d->weights = (const int8_t *)d->call->operands[NK_CONV2D_WEIGHTS].data;
    if (!choose_products(d)) return 0;
    const uint32_t taps = (uint32_t)w->kernel_h * (uint32_t)w->kernel_w;
    d->inputs = d->in->channels / d->groups;
    d->outputs = d->out->channels / d->groups;
    d->tap_quads = nk_blocks(d->inputs, d->call->length) * (d->call->length / 4);
    d->quads = taps * d->tap_quads;
    d->block_bytes = (size_t)nk_dense_bytes(d->call, 1, taps, d->inputs);
    d->group_bytes = nk_blocks(d->outputs, d->call->units) * d->block_bytes;
    d->thin = d->inputs <= 4 && d->tap_quads == 1 && d->quads <= QUADS;
    d->flip = nk_flip(d->in);
    d->dense_rows = d->groups == 1 && w->dilation_w == 1 && d->in->pixel == d->in->channels &&
                    d->inputs % d->call->length == 0;
    d->word = nk_make_word_stage(d->stage);
    d->is_short = nk_stage_is_short(d->stage, d->out->channels, most_of(d));
    nk_pixel_pairs(d->call, d->out, all_channels, d);
    return 1;
}

int nk_dsp_conv2d(const nk_call *call, const nk_stage *stage) {
    const nk_conv2d_params *p = (const nk_conv2d_params *)(const void *)call->params;
    dense d = {.call = call,
               .stage = stage,
               .window = *nk_window_first(call),
               .groups = (uint32_t)p->groups,
               .input_zero = p->input_zero,
               .weights_zero = p->weights_zero};
    return run(&d);
}

_Static_assert((int)NK_CONV2D_INPUT == (int)NK_FULLY_CONNECTED_INPUT &&
                   (int)NK_CONV2D_WEIGHTS == (int)NK_FULLY_CONNECTED_WEIGHTS &&
                   (int)NK_CONV2D_OUTPUT == (int)NK_FULLY_CONNECTED_OUTPUT,
               "both kernels have these operands in one place");

int nk_dsp_fully_connected(const nk_call *call, const nk_stage *stage) {
    const nk_fully_connected_params *p =
        (const nk_fully_connected_params *)(const void *)call->params;
    dense d = {.call = call,
               .stage = stage,
               .window = {1, 1, 1, 1, 1, 1, 0, 0},
               .groups = 1,
               .weights_zero = p->weights_zero};
    return run(&d);
}

#endif
