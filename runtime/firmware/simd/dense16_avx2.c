/* Dense products of 16-bit activations: the panel and products of dense_avx2.c, whose 32-bit sums
 * are gathered in 64 bits every NK_WIDE_RUN inputs, before they could overflow. */
#include "loops.h"

#if NK_HAS_X86

#define NK_ITEM 2
#include "products_avx2.h"
#include "wide_avx2.h"

#define CHUNK 24                     /* pixels whose accumulators wait for the stage: 3 KiB */
#define ROOM (NK_WIDE_RUN / NK_PACK) /* blocks of inputs rearranged at a time */

static void nk_fill_absent(const nk_dense *d, uint8_t *to, uint32_t count) {
    memset(to, 0, (size_t)count * d->depth * NK_ITEM);
}

static void nk_fill_pixels(const nk_dense *d, uint8_t *to, const uint8_t *from, size_t stride,
                           uint32_t count) {
    const size_t kept = (size_t)d->inputs * NK_ITEM, pixel = (size_t)d->depth * NK_ITEM;
    if (stride == pixel && kept == pixel) {
        memcpy(to, from, pixel * count);
        return;
    }
    for (uint32_t i = 0; i < count; ++i, to += pixel, from += stride) {
        memcpy(to, from, kept);
        memset(to + kept, 0, pixel - kept);
    }
}

/* 16 channels of a block. */
typedef struct {
    const nk_dense *d;
    const nk_block *b;
    const nk_wide_stage *stage;
    const nk_wide_lanes *lanes;
    const int8_t *weights;
    uint32_t channel, channels;
} slab;

/* Adds one part of the inputs to the sums of `count` pixels. */
static void add_part(const slab *l, const uint8_t *panel, uint32_t count, uint32_t first,
                     uint32_t skip, const part *t, const int8_t *expanded, int64_t *sums) {
    int32_t acc[CHUNK * LANES] __attribute__((aligned(32)));
    const nk_block *b = l->b;
    memset(acc, 0, (size_t)count * LANES * sizeof *acc);
    tiles(t, panel + first * b->outer_step + (size_t)skip * NK_PACK * NK_ITEM, b->step, count,
          expanded, acc);
    for (uint32_t i = 0; i < count * LANES; i += 4) {
        const __m128i four = _mm_load_si128((const __m128i *)(const void *)(acc + i));
        __m256i *to = (__m256i *)(void *)(sums + i);
        _mm256_store_si256(to,
                           _mm256_add_epi64(_mm256_load_si256(to), _mm256_cvtepi32_epi64(four)));
    }
}

static void pixels(const slab *l, const uint8_t *panel, uint32_t count, const int8_t *expanded,
                   uint8_t *to) {
    int64_t sums[CHUNK * LANES] __attribute__((aligned(32)));
    int8_t own[ROOM * NK_PACK * LANES] __attribute__((aligned(32)));
    const nk_block *b = l->b;
    const uint32_t length = b->length < ROOM ? b->length : ROOM, outer = ROOM / length;
    memset(sums, 0, (size_t)count * LANES * sizeof *sums);
    for (uint32_t o = 0; o < b->outer; o += outer) {
        for (uint32_t skip = 0; skip < b->length; skip += length) {
            const part t = {b->outer - o < outer ? b->outer - o : outer,
                            b->length - skip < length ? b->length - skip : length, b->outer_step};
            if (!expanded) expand_part(l->d, b, l->weights, l->channels > 8, o, skip, &t, own);
            add_part(l, panel, count, o, skip, &t, expanded ? expanded : own, sums);
            if (expanded) expanded += (size_t)t.outer * t.length * NK_PACK * LANES;
        }
    }
    for (uint32_t i = 0; i < count; ++i, to += l->d->out->pixel)
        nk_wide_finish(l->stage, l->lanes, sums + i * LANES, l->channels,
                       l->d->first_out + l->channel, to);
}

#define EXPANDED 32768 /* bytes of rearranged weights held for a block; more are made again */

/* All parts of the weights, in the order in which `pixels` takes them. */
static void expand_all(const slab *l, int8_t *to) {
    const nk_block *b = l->b;
    const uint32_t length = b->length < ROOM ? b->length : ROOM, outer = ROOM / length;
    for (uint32_t o = 0; o < b->outer; o += outer) {
        for (uint32_t skip = 0; skip < b->length; skip += length) {
            const part t = {b->outer - o < outer ? b->outer - o : outer,
                            b->length - skip < length ? b->length - skip : length, b->outer_step};
            expand_part(l->d, b, l->weights, l->channels > 8, o, skip, &t, to);
            to += (size_t)t.outer * t.length * NK_PACK * LANES;
        }
    }
}

static void product(const nk_dense *d, const nk_block *b, const void *state) {
    int8_t expanded[EXPANDED] __attribute__((aligned(32)));
    const int fits = (size_t)b->outer * b->length * NK_PACK * LANES <= EXPANDED;
    const nk_operand *out = d->out;
    for (uint32_t channel = 0; channel < d->outputs; channel += LANES) {
        const uint32_t left = d->outputs - channel, channels = left < LANES ? left : LANES;
        const nk_wide_lanes lanes = nk_wide_lanes_of(state, d->first_out + channel, channels);
        const slab l = {
            d,       b,       state, &lanes, d->weights + channel / NK_PACK * d->group_bytes,
            channel, channels};
        if (fits) expand_all(&l, expanded);
        for (uint32_t r = 0; r < b->rows; ++r) {
            uint8_t *to = nk_row(out, b->image, b->y + (int32_t)r) + (size_t)b->x * out->pixel +
                          2 * (size_t)(d->first_out + channel);
            for (uint32_t x = 0; x < b->columns; x += CHUNK)
                pixels(&l, b->panel + r * b->row_step + x * b->step,
                       b->columns - x < CHUNK ? b->columns - x : CHUNK, fits ? expanded : NULL,
                       to + (size_t)x * out->pixel);
        }
    }
}

/* All of a call; `p` describes the window. */
static int run(const nk_call *call, const nk_operand *weights, const nk_conv2d_params *p,
               const nk_operand *in, const nk_operand *out, const nk_wide_stage *stage) {
    const uint32_t groups = (uint32_t)p->groups, inputs = in->channels / groups,
                   outputs = out->channels / groups;
    const uint64_t taps = (uint64_t)p->kernel_h * (uint32_t)p->kernel_w;
    if (call->units != NK_PACK || call->length != NK_PACK || inputs == 0 || out->width == 0)
        return 0;
    nk_dense d = {.call = call, .in = in, .out = out, .p = p, .inputs = inputs, .outputs = outputs};
    d.depth = nk_blocks(inputs, NK_PACK) * NK_PACK;
    d.group_bytes = (size_t)taps * d.depth * NK_PACK;
    for (uint32_t group = 0; group < groups; ++group) {
        d.first_in = group * inputs * NK_ITEM; /* bytes */
        d.first_out = group * outputs;
        d.weights = (const int8_t *)weights->data +
                    (size_t)group * nk_blocks(outputs, NK_PACK) * d.group_bytes;
        for (uint32_t image = 0; image < out->batch; ++image)
            if (!nk_dense_run(&d, image, call->row0, call->row1, product, stage)) return 0;
    }
    return 1;
}

int nk_conv2d16_avx2(const nk_call *call, const nk_wide_stage *stage) {
    const nk_conv2d16_params *p = (const nk_conv2d16_params *)(const void *)call->params;
    const nk_conv2d_params window = {.kernel_h = p->kernel_h,
                                     .kernel_w = p->kernel_w,
                                     .stride_h = p->stride_h,
                                     .stride_w = p->stride_w,
                                     .dilation_h = p->dilation_h,
                                     .dilation_w = p->dilation_w,
                                     .pad_top = p->pad_top,
                                     .pad_left = p->pad_left,
                                     .groups = p->groups};
    return run(call, &call->operands[NK_CONV2D16_WEIGHTS], &window,
               &call->operands[NK_CONV2D16_INPUT], &call->operands[NK_CONV2D16_OUTPUT], stage);
}

int nk_fully_connected16_avx2(const nk_call *call, const nk_wide_stage *stage) {
    const nk_conv2d_params one = {.kernel_h = 1,
                                  .kernel_w = 1,
                                  .stride_h = 1,
                                  .stride_w = 1,
                                  .dilation_h = 1,
                                  .dilation_w = 1,
                                  .groups = 1};
    return run(call, &call->operands[NK_FULLY_CONNECTED16_WEIGHTS], &one,
               &call->operands[NK_FULLY_CONNECTED16_INPUT],
               &call->operands[NK_FULLY_CONNECTED16_OUTPUT], stage);
}

#endif
