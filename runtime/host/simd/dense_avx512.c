/* conv2d on packed weights as they lie: a block of [8 outputs][8 inputs] bytes is one register, 8
 * activation bytes are broadcast to all outputs, and VPDPBUSD leaves two partial sums per output.
 * Activations are made unsigned (+128 for INT8), which adds 128 * sum(w) to each output; that is
 * subtracted from the bias. All of it is exact modulo 2^32, as the definition's accumulators are.
 */
#include "loops.h"

#if NK_HAS_X86

#define NK_ITEM 1
#include "dense.h"
#include "memo.h"

#include <immintrin.h>

#include "thin.h"
#include "broad_avx512.h"
#include "winograd_avx512.h"

#define CHUNK 48 /* pixels whose accumulators wait for the stage: 6 KiB */
/* Pixels: fewer are done with four groups at a time, whose sums depend less on each other. */
#define FEW 3

/* Channels of a call that are done at a time. */
#define SLICE 256

/* What depends on the weights and tables of a slice alone. */
typedef struct {
    int32_t bias[SLICE]; /* bias - 128 * sum(w) */
    uint32_t broad; /* channels in front whose weights are rearranged and whose lanes are natural */
    nk_lanes16 lanes[SLICE / 16]; /* the channels at hand come first; the rest may not exist */
} constants;

/* What blocks of one call share. */
typedef struct {
    const constants *constants;
    const int8_t *broad; /* rearranged weights */
    nk_clamps clamps;
} shared;

/* Pixels of up to 16 bytes. What is stored behind a pixel belongs to one that is filled later, or
 * to the panel's end. */
static void fill_small(const nk_dense *d, uint8_t *to, const uint8_t *from, size_t stride,
                       uint32_t count) {
    const __m128i flip = _mm_set1_epi8((char)d->flip);
    const __mmask16 mask = nk_first_lanes(d->inputs);
    for (uint32_t i = 0; i < count; ++i, to += d->depth, from += stride)
        _mm_storeu_si128((__m128i *)(void *)to,
                         _mm_xor_si128(_mm_maskz_loadu_epi8(mask, from), flip));
}

/* Stores are whole, here too: masked ones are slow. */
static void nk_fill_pixels(const nk_dense *d, uint8_t *to, const uint8_t *from, size_t stride,
                           uint32_t count) {
    const __m512i flip = _mm512_set1_epi8((char)d->flip);
    size_t bytes = d->inputs, depth = d->depth;
    if (stride == depth && bytes == depth) {
        bytes *= count, depth *= count;
        count = count ? 1 : 0;
    } else if (depth <= 16) {
        fill_small(d, to, from, stride, count);
        return;
    }
    for (uint32_t i = 0; i < count; ++i, to += depth, from += stride) {
        size_t at = 0;
        for (; at + 64 <= bytes; at += 64)
            _mm512_storeu_si512(to + at, _mm512_xor_si512(_mm512_loadu_si512(from + at), flip));
        if (at == bytes) continue;
        const __mmask64 rest = ~(__mmask64)0 >> (64 - (bytes - at));
        _mm512_storeu_si512(to + at,
                            _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + at), flip));
    }
}

static void nk_fill_absent(const nk_dense *d, uint8_t *to, uint32_t count) {
    const size_t bytes = (size_t)count * d->depth;
    const __m512i value = _mm512_set1_epi8((char)((uint8_t)d->p->input_zero ^ d->flip));
    for (size_t at = 0; at < bytes; at += 64) _mm512_storeu_si512(to + at, value);
    for (uint32_t i = 0; d->inputs < d->depth && i < count; ++i)
        memset(to + (size_t)i * d->depth + d->inputs, d->flip, d->depth - d->inputs);
}

static __attribute__((noinline)) void stage16(const nk_stage *stage, const nk_clamps *c,
                                              const nk_lanes16 *k, size_t channel,
                                              uint32_t channels, const int32_t *acc, uint32_t count,
                                              uint8_t *to, size_t pixel) {
    nk_stage16(stage, c, k, channel, channels, acc, NK_ROW, count, to, pixel, 1);
}

static inline uint8_t *output_at(const nk_dense *d, const nk_block *b, uint32_t row,
                                 uint32_t channel) {
    return nk_row(d->out, b->image, b->y + (int32_t)row) + (size_t)b->x * d->out->pixel +
           d->first_out + channel;
}

/* `groups` (1, 2 or 4) groups of output channels from `channel` of this product on, by way of
 * accumulators in memory. */
static void slab(const nk_dense *d, const nk_tiling *t, const shared *s, uint32_t channel,
                 uint32_t groups) {
    const nk_block *b = t->block;
    int32_t acc[CHUNK * NK_ROW] __attribute__((aligned(64)));
    for (uint32_t r = 0; r < b->rows; ++r) {
        const uint8_t *panel = b->panel + r * b->row_step;
        uint8_t *to = output_at(d, b, r, channel);
        for (uint32_t x = 0; x < b->columns; x += CHUNK, to += (size_t)CHUNK * d->out->pixel) {
            const uint32_t count = b->columns - x < CHUNK ? b->columns - x : CHUNK;
            nk_tiles(t, panel + x * b->step, count, groups, acc);
            for (uint32_t i = 0; i < groups; i += 2) {
                const uint32_t first = channel + 8 * i, left = d->outputs - first,
                               most = 8 * (groups - i < 2 ? 1 : 2);
                stage16(d->stage, &s->clamps, &s->constants->lanes[first / 16],
                        d->first_out + first, left < most ? left : most, acc + 8 * i, count,
                        to + 8 * i, d->out->pixel);
            }
        }
    }
}

/* 8 start values in the even lanes: the first of two partial sums. */
static inline __m512i widen_bias(const int32_t *bias) {
    return _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)bias));
}

static void product(const nk_dense *d, const nk_block *b, const void *state) {
    const shared *s = state;
    const uint32_t broad = s->constants->broad;
    const uint32_t groups = nk_blocks(d->outputs, NK_PACK);
    const int direct = s->clamps.fast && s->clamps.open && !d->stage->lut && b->columns >= FEW;
    nk_waiting q;
    q.fours = q.done = q.doubt = 0;
    q.clamps = &s->clamps, q.pixel = d->out->pixel;
    if (broad)
        nk_broad_product(d, b, broad, s->broad, s->constants->bias, s->constants->lanes,
                         &s->clamps);
    for (uint32_t at = broad / NK_PACK, taken; at < groups; at += taken) {
        const uint32_t left = groups - at, channel = NK_PACK * at;
        const nk_lanes16 *lanes = &s->constants->lanes[at / 2];
        const int staged = direct && d->outputs - channel >= 16 && lanes->form == NK_FLOAT;
        taken = left == 1 ? 1 : staged || left < 4 ? 2 : 4;
        __m512i start[4];
        for (uint32_t g = 0; g < taken; ++g)
            start[g] = widen_bias(s->constants->bias + channel + 8 * g);
        const nk_tiling t = {b, d->group_bytes, d->weights + at * d->group_bytes, start};
        if (!staged) slab(d, &t, s, channel, taken);
        for (uint32_t r = 0; staged && r < b->rows; ++r)
            nk_staged_tiles(&t, b->panel + r * b->row_step, b->columns, &q, lanes,
                            output_at(d, b, r, channel));
    }
    if (q.fours) nk_stage_rest(&q, 0); /* right for RELU, too */
}

/* 128 times the sum of the weights of a group's 8 channels (0 for UINT8 input), from its two
 * partial sums each. */
static inline __m256i total(__m512i sum) {
    return _mm512_cvtepi64_epi32(_mm512_add_epi32(sum, _mm512_srli_epi64(sum, 32)));
}

static void store_bias(const nk_dense *d, constants *k, uint32_t c, __m256i sum) {
    const uint32_t left = d->outputs - c;
    const uint8_t *at = d->stage->table + 4 * (size_t)(d->first_out + c);
    const __m256i bias =
        _mm256_maskz_loadu_epi32(left < 8 ? (__mmask8)((1u << left) - 1u) : (__mmask8)0xFF, at);
    _mm256_storeu_si256((__m256i *)(void *)(k->bias + c), _mm256_sub_epi32(bias, sum));
}

/* Start values of the accumulators, four groups at a time; a missing group repeats the last. */
static void fill_bias(const nk_dense *d, constants *k) {
    const __m512i units = _mm512_set1_epi8((char)d->flip);
    const uint32_t groups = nk_blocks(d->outputs, NK_PACK);
    const size_t blocks = d->flip ? d->group_bytes : 0;
    for (uint32_t g = 0; g < groups; g += 4) {
        const int8_t *w[4];
        __m512i sum[4];
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; ++i) {
            w[i] = d->weights + (g + i < groups ? g + i : groups - 1) * d->group_bytes;
            sum[i] = _mm512_setzero_si512();
        }
        for (size_t at = 0; at < blocks; at += NK_PACK * NK_PACK)
#pragma GCC unroll 4
            for (uint32_t i = 0; i < 4; ++i) nk_dot4(&sum[i], units, _mm512_loadu_si512(w[i] + at));
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; ++i)
            if (g + i < groups) store_bias(d, k, 8 * (g + i), total(sum[i]));
    }
}

/* The first `broad` channels have natural lanes, if all of them may take the float form. */
static void fill_constants(const nk_dense *d, const nk_clamps *clamps, constants *k,
                           uint32_t broad) {
    const int32_t most = nk_most_sum(d);
    int all = 1;
    fill_bias(d, k);
    for (uint32_t c = 0; c < d->outputs; c += 16) {
        k->lanes[c / 16] =
            nk_lanes16_of(d->stage, clamps, d->first_out + c, d->outputs - c, c >= broad, most);
        all &= c >= broad || k->lanes[c / 16].form == NK_FLOAT;
    }
    k->broad = broad;
    if (!all) fill_constants(d, clamps, k, 0);
}

/* Bytes of the constants of `outputs` channels. */
static size_t constants_bytes(uint32_t outputs) {
    return offsetof(constants, lanes) + nk_blocks(outputs, 16) * sizeof(nk_lanes16);
}

/* The channels of `d` in tiles of 4 by 4, if there is memory for the transformed weights: they are
 * eight times as large as the packed ones, so they are made once, not per call. */
static __attribute__((noinline)) int run_winograd(const nk_call *call, const nk_operand *weights,
                                                  const nk_operand *table, const nk_dense *d,
                                                  const shared *s, uint32_t part) {
    const size_t sixteen = nk_winograd_bytes(d);
    const size_t bytes = 64 + d->outputs / 16 * sixteen;
    int fresh = 1;
    uint8_t *kept = nk_memo(call, weights, table, part, bytes, 1, &fresh);
    if (!kept) return 0;
    if (fresh) {
        kept[0] = 1;
        for (uint32_t c = 0; kept[0] && c < d->outputs; c += 16)
            kept[0] =
                (uint8_t)nk_winograd_fill(d, &s->clamps, c, nk_most_sum(d),
                                          (nk_winograd *)(void *)(kept + 64 + c / 16 * sixteen));
    }
    if (!kept[0]) return 0;
    nk_winograd_run(d, kept + 64, &s->clamps);
    return 1;
}

/* The channels of `d`; `part` numbers them within the call. */
static int run_slice(const nk_call *call, const nk_operand *weights, const nk_operand *table,
                     const nk_dense *d, shared *s, uint32_t part, int thin) {
    constants own;
    int8_t own_weights[NK_THIN_BYTES] __attribute__((aligned(64)));
    int8_t own_broad[NK_BROAD_BYTES] __attribute__((aligned(64)));
    const size_t size = constants_bytes(d->outputs), thin_bytes = thin ? NK_THIN_BYTES : 0;
    int fresh = 1;
    const int stripe = call->row1 - call->row0 < (int32_t)d->out->height;
    const uint64_t pixels =
        (uint64_t)d->out->batch * d->out->width * (uint32_t)(call->row1 - call->row0);
    const int direct = s->clamps.fast && s->clamps.open && !d->stage->lut;
    const uint32_t broad = direct ? nk_broad_outputs(d, pixels) : 0;
    const size_t broad_bytes = nk_broad_bytes(d, broad);
    uint8_t *kept =
        nk_memo(call, weights, table, part, size + thin_bytes + broad_bytes, stripe, &fresh);
    constants *k = kept ? (constants *)(void *)kept : &own;
    int8_t *thin_weights = kept ? (int8_t *)kept + size : own_weights;
    int8_t *broad_weights = kept ? thin_weights + thin_bytes : own_broad;
    const nk_dense used = thin ? nk_thin(d, thin_weights, fresh) : *d;
    if (fresh) {
        fill_constants(&used, &s->clamps, k, broad);
        nk_broad_fill(&used, k->broad, broad_weights);
    }
    s->constants = k;
    s->broad = broad_weights;
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
    s.clamps = nk_clamps_of(stage, out->dtype == NEUTRON_DTYPE_INT8);
    const int thin = nk_thin_pays(&d, NK_BROAD_STEP);
    const uint32_t slice = thin ? nk_thin_slice(&d, SLICE) : SLICE;
    const int winograd = s.clamps.fast && s.clamps.open && !stage->lut &&
                         nk_winograd_pays(&d, (uint32_t)(call->row1 - call->row0));
    uint32_t part = 0;
    for (uint32_t group = 0; group < groups; ++group) {
        for (uint32_t c = 0; c < outputs; c += d.outputs, ++part) {
            d.first_in = group * inputs;
            d.first_out = group * outputs + c;
            d.weights = (const int8_t *)weights->data +
                        ((size_t)group * nk_blocks(outputs, NK_PACK) + c / NK_PACK) * d.group_bytes;
            d.outputs = winograd ? nk_winograd_slice(&d, outputs - c) : 0;
            if (d.outputs && run_winograd(call, weights, table, &d, &s, part)) continue;
            d.outputs = nk_least(outputs - c, slice);
            if (!run_slice(call, weights, table, &d, &s, part, thin)) return 0;
        }
    }
    return 1;
}

int nk_conv2d_avx512(const nk_call *call, const nk_stage *stage) {
    return run(call, &call->operands[NK_CONV2D_WEIGHTS], &call->operands[NK_CONV2D_TABLE],
               (const nk_conv2d_params *)(const void *)call->params,
               &call->operands[NK_CONV2D_INPUT], &call->operands[NK_CONV2D_OUTPUT], stage);
}

int nk_fully_connected_avx512(const nk_call *call, const nk_stage *stage) {
    const nk_fully_connected_params *p =
        (const nk_fully_connected_params *)(const void *)call->params;
    const nk_conv2d_params one = nk_one_pixel(p->weights_zero);
    return run(call, &call->operands[NK_FULLY_CONNECTED_WEIGHTS],
               &call->operands[NK_FULLY_CONNECTED_TABLE], &one,
               &call->operands[NK_FULLY_CONNECTED_INPUT],
               &call->operands[NK_FULLY_CONNECTED_OUTPUT], stage);
}

#endif
