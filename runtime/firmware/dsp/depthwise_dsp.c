/* depthwise_conv2d four channels at a time: the weights of four channels become pairs of 16-bit
 * numbers once per call, and each tap is one word of inputs and four products.
 */
#include "loops.h"
#include "stage_dsp.h"

#if NK_HAS_DSP

enum { TAPS = 49 };

/* Weights of channels 0 and 2, 1 and 3. */
typedef struct {
    int16x2_t even, odd;
} tap_weights;

/* Four channels of a call. */
typedef struct {
    const nk_stage *stage;
    const nk_operand *in, *out;
    nk_window window;
    int32_t flip, input_zero;
    int form;
    uint32_t channel, count; /* four, or those that are left */
    tap_weights taps[TAPS];
} lanes;

static void load_weights(lanes *l, const int8_t *weights, uint32_t step, uint32_t taps,
                         int32_t zero) {
    const int16x2_t zeros = nk_twice(zero);
    for (uint32_t tap = 0; tap < taps; ++tap, weights += step) {
        const uint32_t word = nk_word(weights);
        l->taps[tap].even = __ssub16(nk_even_signed(word), zeros);
        l->taps[tap].odd = __ssub16(nk_odd_signed(word), zeros);
    }
}

#define PRODUCTS(x, y, tap) \
    (a = __smlabb(x, (tap)->even, a), b = __smlabb(y, (tap)->odd, b), \
     c = __smlatt(x, (tap)->even, c), d = __smlatt(y, (tap)->odd, d))

/* All taps of a window inside the image. */
static void sum_inside(const lanes *l, uint32_t image, int32_t iy, const size_t offset,
                       int32_t *sums) {
    const nk_window *w = &l->window;
    const size_t step = (size_t)w->dilation_w * l->in->pixel;
    const tap_weights *weights = l->taps;
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (int32_t ky = 0; ky < w->kernel_h; ++ky, iy += w->dilation_h) {
        const uint8_t *from = nk_row(l->in, image, iy) + offset;
        const tap_weights *end = weights + w->kernel_w;
        if (l->flip) {
            for (; weights < end; ++weights, from += step) {
                const uint32_t word = nk_word(from);
                PRODUCTS(nk_even_signed(word), nk_odd_signed(word), weights);
            }
        } else {
            for (; weights < end; ++weights, from += step) {
                const uint32_t word = nk_word(from);
                PRODUCTS(nk_even_unsigned(word), nk_odd_unsigned(word), weights);
            }
        }
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

/* A window that reaches beyond the image, or fewer than four channels. */
static void sum_border(const lanes *l, uint32_t image, int32_t iy, int32_t x0, int32_t *sums) {
    const nk_window *w = &l->window;
    const nk_operand *in = l->in;
    const int16x2_t absent = nk_twice(l->input_zero);
    const tap_weights *weights = l->taps;
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (int32_t ky = 0; ky < w->kernel_h; ++ky, iy += w->dilation_h) {
        const uint8_t *row = iy >= 0 && (uint32_t)iy < in->height ? nk_row(in, image, iy) : NULL;
        int32_t ix = x0;
        for (int32_t kx = 0; kx < w->kernel_w; ++kx, ix += w->dilation_w, ++weights) {
            int16x2_t even = absent, odd = absent;
            if (row && ix >= 0 && (uint32_t)ix < in->width) {
                const uint8_t *from = row + (size_t)ix * in->pixel + l->channel;
                uint32_t word = 0;
                if (l->count == 4) word = nk_word(from);
                else memcpy(&word, from, l->count);
                even = l->flip ? nk_even_signed(word) : nk_even_unsigned(word);
                odd = l->flip ? nk_odd_signed(word) : nk_odd_unsigned(word);
            }
            PRODUCTS(even, odd, weights);
        }
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

/* The rows of a call, for four of its channels. */
static bool rows_of(const nk_call *call, const lanes *l) {
    const nk_window *w = &l->window;
    const nk_operand *in = l->in, *out = l->out;
    const int32_t reach_h = (w->kernel_h - 1) * w->dilation_h,
                  reach_w = (w->kernel_w - 1) * w->dilation_w;
    int32_t bias[4] = {0};
    for (uint32_t m = 0; m < l->count; ++m) bias[m] = nk_stage_bias(l->stage, l->channel + m);
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            if (nk_stopped(call)) return false;
            const int32_t y0 = y * w->stride_h - w->pad_top;
            const bool rows_inside = l->count == 4 && y0 >= 0 && y0 + reach_h < (int32_t)in->height;
            uint8_t *to = nk_row(out, image, y);
            int32_t x0 = -w->pad_left;
            for (uint32_t x = 0; x < out->width; ++x, x0 += w->stride_w, to += out->pixel) {
                int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
                if (rows_inside && x0 >= 0 && x0 + reach_w < (int32_t)in->width)
                    sum_inside(l, image, y0, (size_t)x0 * in->pixel + l->channel, sums);
                else sum_border(l, image, y0, x0, sums);
                for (uint32_t m = 0; m < l->count; ++m)
                    nk_stage_pixels(l->stage, l->form, l->channel + m, sums + m, 1, &to, 1);
            }
        }
    }
    return true;
}

int nk_dsp_depthwise_conv2d(const nk_call *call, const nk_stage *stage) {
    const nk_depthwise_conv2d_params *p =
        (const nk_depthwise_conv2d_params *)(const void *)call->params;
    const int8_t *weights = (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS].data;
    lanes l = {.stage = stage,
               .in = &call->operands[NK_DEPTHWISE_CONV2D_INPUT],
               .out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT],
               .window = *nk_window_first(call),
               .input_zero = p->input_zero};
    const uint64_t taps = (uint64_t)p->kernel_h * (uint32_t)p->kernel_w;
    if (taps > TAPS || p->depth_multiplier != 1 || call->units % 4) return 0;
    const uint32_t channels = l.out->channels;
    l.flip = nk_flip(l.in);
    l.form = nk_stage_form(stage, channels, taps * 255 * 383);
    for (l.channel = 0; l.channel < channels; l.channel += 4) {
        l.count = channels - l.channel < 4 ? channels - l.channel : 4;
        const size_t block = (size_t)(l.channel / call->units) * call->units * (uint32_t)taps;
        load_weights(&l, weights + block + l.channel % call->units, call->units, (uint32_t)taps,
                     p->weights_zero);
        if (!rows_of(call, &l)) break;
    }
    return 1;
}

#endif
