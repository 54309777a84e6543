/* conv2d and fully_connected of INT8 with Helium: the windows of two output pixels become
 * consecutive bytes once, where they are not already, and meet the weights of all output channels.
 *
 *   windows of two pixels  ->  bytes [at most WINDOW each]  x  weights of 4 channels  ->  8 sums
 *
 * A larger window is taken in parts of whole taps, each with all of up to CHANNELS channels, whose
 * sums are kept meanwhile. Sums wrap, so their order does not matter.
 */
#include "dsp/pixel_pairs.h"
#include "loops.h"
#include "products_helium.h"
#include "stage_helium.h"

#if NK_HAS_HELIUM

enum { WINDOW = 576, CHANNELS = 32, UNITS = 4, LENGTH = 4 };

/* What does not change within a call. */
typedef struct {
    const nk_call *call;
    const nk_stage *stage;
    const nk_operand *in, *out;
    nk_window window;
    uint32_t groups, inputs, outputs; /* channels of a group */
    uint32_t taps, taps_at_once, tap_bytes;
    uint32_t input_zero; /* in each byte of a word */
    const int8_t *weights;
    size_t block_bytes, group_bytes; /* weights of four output channels, of a group */
    bool by_fours;                   /* outputs are, which have no table */
    bool is_right;                   /* their shifts are to the right */
    bool in_place;                   /* a window is one tap, inside the image */
    bool dense_rows;                 /* taps of a row of the window follow each other */
} dense;

/* Taps of a window that become bytes. */
typedef struct {
    uint32_t first, count;
} part;

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint8_t *copy(uint8_t *to, const uint8_t *from, uint32_t count) {
    uint8_t *const end = to + count;
    for (; count >= 16; count -= 16, from += 16, to += 16) vst1q_u8(to, vld1q_u8(from));
    if (count) {
        const mve_pred16_t left = vctp8q(count);
        vst1q_p_u8(to, vld1q_z_u8(from, left), left);
    }
    return end;
}

/* One tap; inputs beyond the last are 0. NULL: absent, and its inputs are the zero point. */
static uint8_t *copy_tap(const dense *d, const uint8_t *from, uint8_t *to) {
    const uint8x16_t absent = vreinterpretq_u8_u32(vdupq_n_u32(d->input_zero));
    for (uint32_t at = 0; at < d->tap_bytes; at += 16) {
        const mve_pred16_t there = at < d->inputs ? vctp8q(d->inputs - at) : 0;
        const uint8x16_t bytes =
            from ? vld1q_z_u8(from + at, there) : vpselq_u8(absent, vdupq_n_u8(0), there);
        vst1q_p_u8(to + at, bytes, vctp8q(d->tap_bytes - at));
    }
    return to + d->tap_bytes;
}

/* Taps of at most four inputs in one row of the image; no word is read that ends behind the row. */
static uint8_t *copy_thin(const dense *d, const uint8_t *from, const uint8_t *last, uint32_t count,
                          uint8_t *to) {
    const uint32_t mask = UINT32_MAX >> (32 - 8 * d->inputs);
    const size_t step = (size_t)d->window.dilation_w * d->in->pixel;
    for (uint8_t *const end = to + 4 * (size_t)count; to < end; to += 4, from += step) {
        uint32_t word = 0;
        if (from <= last) word = nk_word(from) & mask;
        else memcpy(&word, from, d->inputs);
        memcpy(to, &word, sizeof word);
    }
    return to;
}

/* Taps of a window as bytes. */
static void gather(const dense *d, const nk_pixels *p, uint32_t pixel, uint32_t group, part taps,
                   uint8_t *to) {
    const nk_window *w = &d->window;
    const nk_operand *in = d->in;
    const int32_t left_x = p->x[pixel] * w->stride_w - w->pad_left;
    const int32_t right_x = left_x + (w->kernel_w - 1) * w->dilation_w;
    const bool inside = left_x >= 0 && right_x < (int32_t)in->width;
    int32_t ky = (int32_t)taps.first / w->kernel_w, kx = (int32_t)taps.first % w->kernel_w;
    for (; taps.count; ++ky, kx = 0) {
        const int32_t iy = p->y[pixel] * w->stride_h - w->pad_top + ky * w->dilation_h;
        const uint8_t *row = iy >= 0 && (uint32_t)iy < in->height ? nk_row(in, p->image, iy) : NULL;
        const uint32_t here = smaller((uint32_t)(w->kernel_w - kx), taps.count);
        int32_t ix = left_x + kx * w->dilation_w;
        taps.count -= here;
        if (row && inside && (d->dense_rows || d->tap_bytes == 4)) {
            const uint8_t *from = row + (size_t)ix * in->pixel + (size_t)group * d->inputs;
            const uint8_t *last = row + (size_t)(in->width - 1) * in->pixel + in->channels - 4;
            to = d->dense_rows ? copy(to, from, here * d->tap_bytes)
                               : copy_thin(d, from, last, here, to);
            continue;
        }
        for (const int32_t end = ix + (int32_t)here * w->dilation_w; ix < end;
             ix += w->dilation_w) {
            const bool there = row && ix >= 0 && (uint32_t)ix < in->width;
            const size_t at = (size_t)ix * in->pixel + (size_t)group * d->inputs;
            to = copy_tap(d, there ? row + at : NULL, to);
        }
    }
}

/* Outputs of up to four channels of one or two pixels, for any stage. */
static void finish_each(const dense *d, const nk_pixels *p, size_t channel, uint32_t count,
                        const nk_four_sums *sums) {
    for (uint32_t pixel = 0; pixel < p->count; ++pixel)
        for (uint32_t m = 0; m < count; ++m)
            p->to[pixel][channel + m] =
                nk_stage_output(d->stage, channel + m, sums->pixel[pixel][m]);
}

/* Outputs of `count` channels of one or two pixels. */
static void finish(const dense *d, const nk_pixels *p, size_t channel, uint32_t count,
                   const nk_four_sums *sums) {
    const nk_stage *stage = d->stage;
    const bool exact = stage->rounding == NEUTRON_ROUNDING_EXACT31;
    const uint32_t fours = d->is_right ? count / 4 : 0;
    const nk_finish_right_job job = {.sums = sums->pixel[0],
                                     .at = stage->table + stage->column + 4 * channel,
                                     .column = stage->column,
                                     .to = p->to[0] + channel,
                                     .other = p->to[p->count - 1] + channel,
                                     .fours = fours,
                                     .zero = stage->zero,
                                     .low = stage->low,
                                     .high = stage->high};
    nk_finish_right(&job);
    sums += fours;
    for (uint32_t m = 4 * fours; m < count; m += 4, ++sums) {
        const mve_pred16_t left = vctp32q(count - m);
        const int32_t *at =
            (const int32_t *)(const void *)(stage->table + stage->column + 4 * (channel + m));
        const int32x4_t multipliers = vld1q_z_s32(at, left),
                        shifts = vld1q_z_s32(at + stage->column / 4, left);
        if (!d->by_fours || (exact && vcmpltq_m_n_s32(shifts, NK_HIGH_SHIFT, left))) {
            finish_each(d, p, channel + m, smaller(count - m, 4), sums);
            continue;
        }
        const nk_four_scales scales = nk_make_four_scales(multipliers, shifts);
        for (uint32_t pixel = 0; pixel < p->count; ++pixel) {
            int32x4_t sum = vld1q_s32(sums->pixel[pixel]);
            sum = exact ? nk_four_exact31(multipliers, shifts, sum) : nk_four_mbqm(&scales, sum);
            sum = nk_four_clamped(vaddq_n_s32(sum, stage->zero), stage->low, stage->high);
            vstrbq_p_s32((int8_t *)p->to[pixel] + channel + m, sum, left);
        }
    }
}

static void begin(const int32_t *biases, uint32_t count, nk_four_sums *sums) {
    for (; count >= 4; count -= 4, biases += 4, ++sums) {
        const int32x4_t four = vld1q_s32(biases);
        vst1q_s32(sums->pixel[0], four);
        vst1q_s32(sums->pixel[1], four);
    }
    if (!count) return;
    const int32x4_t four = vld1q_z_s32(biases, vctp32q(count));
    vst1q_s32(sums->pixel[0], four);
    vst1q_s32(sums->pixel[1], four);
}

/* Up to CHANNELS output channels of a group, from `from` on. */
static void channels_of(const dense *d, const nk_pixels *p, uint32_t group, uint32_t from,
                        uint32_t count, uint8_t windows[2][WINDOW], bool *gathered) {
    const size_t channel = (size_t)group * d->outputs + from;
    const int8_t *weights =
        d->weights + (size_t)group * d->group_bytes + (size_t)(from / UNITS) * d->block_bytes;
    nk_four_sums sums[CHANNELS / 4];
    begin((const int32_t *)(const void *)(d->stage->table + 4 * channel), count, sums);
    for (part taps = {0, 0}; taps.first < d->taps; taps.first += taps.count) {
        taps.count = smaller(d->taps - taps.first, d->taps_at_once);
        nk_four_products job = {.in = {windows[0], windows[1]},
                                .weights = weights + (size_t)taps.first * d->tap_bytes * UNITS,
                                .quads = taps.count * d->tap_bytes / 4,
                                .sums = sums,
                                .fours = nk_blocks(count, 4),
                                .next = (uint32_t)d->block_bytes};
        for (uint32_t pixel = 0; pixel < p->count; ++pixel) {
            const nk_window *w = &d->window;
            if (d->in_place)
                job.in[pixel] = nk_row(d->in, p->image, p->y[pixel] * w->stride_h) +
                                (size_t)(p->x[pixel] * w->stride_w) * d->in->pixel +
                                (size_t)group * d->inputs;
            else if (!*gathered) gather(d, p, pixel, group, taps, windows[pixel]);
        }
        *gathered = d->taps <= d->taps_at_once;
        if (p->count == 2) nk_four_products_of_two(&job);
        else nk_four_products_of_one(&job);
    }
    finish(d, p, channel, count, sums);
}

static void all_channels(const void *loop, const nk_pixels *p) {
    const dense *d = loop;
    uint8_t windows[2][WINDOW];
    for (uint32_t group = 0; group < d->groups; ++group) {
        bool gathered = false;
        for (uint32_t from = 0; from < d->outputs; from += CHANNELS)
            channels_of(d, p, group, from, smaller(d->outputs - from, CHANNELS), windows,
                        &gathered);
    }
}

/* Whether each window is one tap of whole words, inside the image. */
static bool is_in_place(const dense *d) {
    const nk_window *w = &d->window;
    return d->taps == 1 && d->inputs % 4 == 0 && w->pad_left == 0 && w->pad_top == 0 &&
           (d->out->height - 1) * (uint32_t)w->stride_h < d->in->height &&
           (d->out->width - 1) * (uint32_t)w->stride_w < d->in->width;
}

static int run(dense *d) {
    const nk_call *call = d->call;
    const nk_window *w = &d->window;
    d->in = &call->operands[NK_CONV2D_INPUT];
    d->out = &call->operands[NK_CONV2D_OUTPUT];
    d->weights = (const int8_t *)call->operands[NK_CONV2D_WEIGHTS].data;
    if (call->units != UNITS || call->length != LENGTH || (uintptr_t)d->weights % 4) return 0;
    if (!nk_flip(d->in)) return 0; /* products of signed bytes */
    d->taps = (uint32_t)w->kernel_h * (uint32_t)w->kernel_w;
    d->inputs = d->in->channels / d->groups;
    d->outputs = d->out->channels / d->groups;
    d->tap_bytes = nk_blocks(d->inputs, LENGTH) * LENGTH;
    d->in_place = is_in_place(d);
    if (!d->in_place && d->tap_bytes > WINDOW) return 0;
    d->taps_at_once = d->in_place ? 1 : WINDOW / d->tap_bytes;
    d->block_bytes = (size_t)nk_dense_bytes(call, 1, d->taps, d->inputs);
    d->group_bytes = nk_blocks(d->outputs, UNITS) * d->block_bytes;
    d->dense_rows = d->groups == 1 && w->dilation_w == 1 && d->in->pixel == d->in->channels &&
                    d->inputs % LENGTH == 0;
    d->by_fours = !d->stage->lut && (d->stage->rounding == NEUTRON_ROUNDING_DOUBLE ||
                                     d->stage->rounding == NEUTRON_ROUNDING_EXACT31);
    d->is_right = nk_stage_is_right(d->stage, d->out->channels);
    nk_pixel_pairs(d->call, d->out, all_channels, d);
    return 1;
}

int nk_helium_conv2d(const nk_call *call, const nk_stage *stage) {
    const nk_conv2d_params *p = (const nk_conv2d_params *)(const void *)call->params;
    dense d = {.call = call,
               .stage = stage,
               .window = *nk_window_first(call),
               .groups = (uint32_t)p->groups,
               .input_zero = (uint8_t)p->input_zero * 0x01010101u};
    return p->weights_zero ? 0 : run(&d);
}

int nk_helium_fully_connected(const nk_call *call, const nk_stage *stage) {
    const nk_fully_connected_params *p =
        (const nk_fully_connected_params *)(const void *)call->params;
    dense d = {.call = call, .stage = stage, .window = {1, 1, 1, 1, 1, 1, 0, 0}, .groups = 1};
    return p->weights_zero ? 0 : run(&d);
}

#endif
