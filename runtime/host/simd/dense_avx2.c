/* Dense products with 16-bit multiply-adds. The panel holds activations as INT16; of the weights,
 * [8 outputs][8 inputs] blocks of 16 output channels are rearranged once per call to pairs of
 * inputs, [inputs / 2][16 outputs][2], so that one broadcast pair meets all outputs and nothing is
 * added across lanes. Products of 8-bit values in pairs fit INT32 without saturation, unlike the
 * 8-bit multiply-add of this instruction set. */
#include "loops.h"

#if NK_HAS_X86

#define NK_ITEM 2
#include "dense.h"
#include "memo.h"

#include <immintrin.h>

#include "products_avx2.h"
#include "stage16_avx2.h"
#include "thin.h"

#define CHUNK 48                /* pixels whose accumulators wait for the stage: 3 KiB */
#define EXPANDED (LANES * 1024) /* bytes of rearranged weights held at a time: 1024 inputs */
#define OWN 20480               /* bytes of constants and weights held for all blocks of a call */
#define KEPT 131072             /* such bytes that are kept from run to run */

/* What depends on the weights and tables of 16 channels alone; their rearranged weights follow. */
typedef struct {
    nk_lanes16 lanes;
    __m256i start[2]; /* of the accumulators: bias + 2^31 */
} constants;

typedef struct {
    nk_clamps8 clamps;
    int fits;
    const uint8_t *kept; /* constants and weights of all channels, or NULL: they do not fit */
    size_t kept_step;    /* from 16 channels to the next */
} shared;

static void nk_fill_absent(const nk_dense *d, uint8_t *to, uint32_t count) {
    const size_t bytes = (size_t)count * d->depth * NK_ITEM;
    const __m256i value = _mm256_set1_epi16((int16_t)d->p->input_zero);
    for (size_t at = 0; at < bytes; at += 32)
        _mm256_storeu_si256((__m256i *)(void *)(to + at), value);
    for (uint32_t i = 0; d->inputs < d->depth && i < count; ++i)
        memset(to + ((size_t)i * d->depth + d->inputs) * NK_ITEM, 0,
               (size_t)(d->depth - d->inputs) * NK_ITEM);
}

static void nk_fill_pixels(const nk_dense *d, uint8_t *to, const uint8_t *from, size_t stride,
                           uint32_t count) {
    size_t values = d->inputs, depth = d->depth;
    if (stride == depth && values == depth) {
        values *= count, depth *= count;
        count = count ? 1 : 0;
    }
    for (uint32_t i = 0; i < count; ++i, to += 2 * depth, from += stride) {
        size_t at = 0;
        for (; at + 16 <= values; at += 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + at));
            const __m256i wide =
                d->flip ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
            _mm256_storeu_si256((__m256i *)(void *)(to + 2 * at), wide);
        }
        for (; at < depth; ++at) {
            const int16_t value = at < values ? (int16_t)nk_value(from[at], d->flip) : 0;
            memcpy(to + 2 * at, &value, 2);
        }
    }
}

static void fill_constants(const nk_dense *d, const nk_clamps8 *clamps, uint32_t channel,
                           constants *k) {
    const uint32_t channels = d->outputs - channel < LANES ? d->outputs - channel : LANES;
    k->lanes = nk_lanes16_of(d->stage, clamps, d->first_out + channel, channels, nk_most_sum(d));
    for (uint32_t h = 0; h < 2; ++h) {
        const uint8_t *bias = d->stage->table + 4 * (size_t)(d->first_out + channel + 8 * h);
        k->start[h] = _mm256_add_epi32(nk_column8(bias, channels > 8 * h ? channels - 8 * h : 0),
                                       _mm256_set1_epi32(INT32_MIN));
    }
}

/* Bytes of the constants and rearranged weights of 16 channels. */
static size_t kept_bytes(const nk_dense *d) { return sizeof(constants) + 2 * d->group_bytes; }

static void fill_kept(const nk_dense *d, const nk_clamps8 *clamps, uint8_t *kept) {
    const size_t step = kept_bytes(d);
    for (uint32_t channel = 0; channel < d->outputs; channel += LANES, kept += step) {
        fill_constants(d, clamps, channel, (constants *)(void *)kept);
        const int8_t *from = d->weights + channel / NK_PACK * d->group_bytes;
        int8_t *to = (int8_t *)kept + sizeof(constants);
        for (size_t at = 0; at < d->group_bytes; at += NK_PACK * NK_PACK)
            expand(from + at, d->outputs - channel > NK_PACK ? from + at + d->group_bytes : NULL,
                   to + 2 * at);
    }
}

/* 16 channels of a block; `expanded` holds all their weights, or NULL. */
typedef struct {
    const nk_dense *d;
    const nk_block *b;
    const shared *s;
    const int8_t *weights;
    const int8_t *expanded;
    const constants *k;
    uint32_t channel, channels;
} slab;

/* Products of `count` pixels with weights that are rearranged a part at a time. */
static void in_parts(const slab *l, const uint8_t *panel, uint32_t count, int32_t *acc) {
    int8_t expanded[EXPANDED] __attribute__((aligned(32)));
    const nk_block *b = l->b;
    const uint32_t room = EXPANDED / LANES / NK_PACK; /* blocks */
    const uint32_t length = b->length < room ? b->length : room, outer = room / length;
    for (uint32_t o = 0; o < b->outer; o += outer) {
        for (uint32_t skip = 0; skip < b->length; skip += length) {
            const part t = {b->outer - o < outer ? b->outer - o : outer,
                            b->length - skip < length ? b->length - skip : length, b->outer_step};
            expand_part(l->d, b, l->weights, l->channels > 8, o, skip, &t, expanded);
            tiles(&t, panel + o * b->outer_step + (size_t)skip * NK_PACK * NK_ITEM, b->step, count,
                  expanded, o + skip ? NULL : l->k->start, acc);
        }
    }
}

static void pixels(const slab *l, const uint8_t *panel, uint32_t count, uint8_t *to) {
    const nk_block *b = l->b;
    int32_t acc[CHUNK * LANES] __attribute__((aligned(32)));
    const part all = {b->outer, b->length, b->outer_step};
    if (l->expanded) tiles(&all, panel, b->step, count, l->expanded, l->k->start, acc);
    else in_parts(l, panel, count, acc);
    nk_stage16(l->d->stage, &l->s->clamps, l->s->fits, &l->k->lanes, l->d->first_out + l->channel,
               l->channels, acc, LANES, count, to, l->d->out->pixel);
}

static void slab_rows(const slab *l) {
    const nk_block *b = l->b;
    const nk_operand *out = l->d->out;
    for (uint32_t r = 0; r < b->rows; ++r) {
        uint8_t *to = nk_row(out, b->image, b->y + (int32_t)r) + (size_t)b->x * out->pixel +
                      l->d->first_out + l->channel;
        for (uint32_t x = 0; x < b->columns; x += CHUNK)
            pixels(l, b->panel + r * b->row_step + x * b->step,
                   b->columns - x < CHUNK ? b->columns - x : CHUNK, to + (size_t)x * out->pixel);
    }
}

static void product(const nk_dense *d, const nk_block *b, const void *state) {
    const shared *s = state;
    const int fit = (size_t)b->outer * b->length * NK_PACK * LANES <= EXPANDED;
    const part all = {b->outer, b->length, b->outer_step};
    for (uint32_t channel = 0; channel < d->outputs; channel += LANES) {
        int8_t expanded[EXPANDED] __attribute__((aligned(32)));
        constants own;
        slab l = {.d = d, .b = b, .s = s, .channel = channel};
        l.weights = d->weights + channel / NK_PACK * d->group_bytes;
        l.channels = d->outputs - channel < LANES ? d->outputs - channel : LANES;
        if (s->kept) {
            const uint8_t *kept = s->kept + channel / LANES * s->kept_step;
            l.k = (const constants *)(const void *)kept;
            l.expanded = (const int8_t *)kept + sizeof(constants);
        } else {
            fill_constants(d, &s->clamps, channel, &own);
            l.k = &own;
            if (fit) expand_part(d, b, l.weights, l.channels > 8, 0, 0, &all, expanded);
            l.expanded = fit ? expanded : NULL;
        }
        slab_rows(&l);
    }
}

/* The channels of `d`; `number` counts such parts of the call. */
static int run_slice(const nk_call *call, const nk_operand *weights, const nk_operand *table,
                     const nk_dense *d, shared *s, uint32_t number, int thin) {
    int8_t own_weights[NK_THIN_BYTES] __attribute__((aligned(64)));
    uint8_t own[OWN] __attribute__((aligned(64)));
    const nk_dense used = thin ? nk_thin(d, own_weights, 1) : *d;
    s->kept_step = kept_bytes(&used);
    const size_t size = nk_blocks(d->outputs, LANES) * s->kept_step;
    int fresh = 1;
    const int stripe = call->row1 - call->row0 < (int32_t)d->out->height;
    uint8_t *kept =
        size <= KEPT ? nk_memo(call, weights, table, number, size, stripe, &fresh) : NULL;
    if (!kept && size <= OWN) kept = own;
    if (kept && fresh) fill_kept(&used, &s->clamps, kept);
    s->kept = kept;
    for (uint32_t image = 0; image < d->out->batch; ++image)
        if (!nk_dense_run(&used, image, call->row0, call->row1, product, s)) return 0;
    return 1;
}

/* All of a call; `p` describes the window. */
static int run(const nk_call *call, const nk_operand *weights, const nk_operand *table,
               const nk_conv2d_params *p, const nk_operand *in, const nk_operand *out,
               const nk_stage *stage) {
    const uint32_t groups = (uint32_t)p->groups, inputs = in->channels / groups,
                   outputs = out->channels / groups;
    const uint64_t taps = (uint64_t)p->kernel_h * (uint32_t)p->kernel_w;
    if (call->units != NK_PACK || call->length != NK_PACK || p->weights_zero != 0 || inputs == 0 ||
        out->width == 0)
        return 0;
    if (taps * inputs * 255 * 128 >= NK_ACC_LIMIT) return 0;
    nk_dense d = {.call = call, .in = in, .out = out, .stage = stage, .p = p, .inputs = inputs};
    d.depth = nk_blocks(inputs, NK_PACK) * NK_PACK;
    d.group_bytes = (size_t)taps * d.depth * NK_PACK;
    d.flip = (uint8_t)nk_flip(in);
    shared s;
    s.fits = nk_clamps8_of(&s.clamps, out->dtype == NEUTRON_DTYPE_INT8, stage->zero, stage->low,
                           stage->high);
    const int thin = nk_thin_pays(&d, NK_PACK);
    const uint32_t slice =
        thin ? nk_thin_slice(&d, outputs) : nk_blocks(outputs, NK_PACK) * NK_PACK;
    uint32_t number = 0;
    for (uint32_t group = 0; group < groups; ++group) {
        for (uint32_t c = 0; c < outputs; c += slice) {
            d.first_in = group * inputs;
            d.first_out = group * outputs + c;
            d.outputs = outputs - c < slice ? outputs - c : slice;
            d.weights = (const int8_t *)weights->data +
                        ((size_t)group * nk_blocks(outputs, NK_PACK) + c / NK_PACK) * d.group_bytes;
            if (!run_slice(call, weights, table, &d, &s, number++, thin)) return 0;
        }
    }
    return 1;
}

int nk_conv2d_avx2(const nk_call *call, const nk_stage *stage) {
    return run(call, &call->operands[NK_CONV2D_WEIGHTS], &call->operands[NK_CONV2D_TABLE],
               (const nk_conv2d_params *)(const void *)call->params,
               &call->operands[NK_CONV2D_INPUT], &call->operands[NK_CONV2D_OUTPUT], stage);
}

int nk_fully_connected_avx2(const nk_call *call, const nk_stage *stage) {
    const nk_fully_connected_params *p =
        (const nk_fully_connected_params *)(const void *)call->params;
    const nk_conv2d_params one = nk_one_pixel(p->weights_zero);
    return run(call, &call->operands[NK_FULLY_CONNECTED_WEIGHTS],
               &call->operands[NK_FULLY_CONNECTED_TABLE], &one,
               &call->operands[NK_FULLY_CONNECTED_INPUT],
               &call->operands[NK_FULLY_CONNECTED_OUTPUT], stage);
}

#endif
