/* conv2d on packed weights as they lie: a block of [8 outputs][8 inputs] bytes is one register, 8 activation bytes are
 * broadcast to all outputs, and VPDPBUSD leaves two partial sums per output. Activations are made unsigned (+128 for
 * INT8), which adds 128 * sum(w) to each output; that is subtracted from the bias. All of it is exact modulo 2^32, as
 * the definition's accumulators are. */
#define NK_ITEM 1
#include "dense.h"
#include "loops.h"

#if NK_HAS_SIMD

#include <immintrin.h>

#include "stage_avx512.h"
#include "thin.h"

#define ROW 32 /* lanes of accumulators per pixel: four groups of 8 channels */
#define CHUNK 48 /* pixels whose accumulators wait for the stage: 6 KiB */

/* What blocks of one call share. */
typedef struct {
    int32_t bias[NK_SLICE]; /* bias - 128 * sum(w) */
    nk_clamps clamps;
    int32_t most; /* bound on the magnitude of a sum of products */
} shared;

/* Pixels of up to 16 bytes. What is stored behind a pixel belongs to one that is filled later, or to the panel's end. */
static void fill_small(const nk_dense *d, uint8_t *to, const uint8_t *from, size_t stride, uint32_t count) {
    const __m128i flip = _mm_set1_epi8((char)d->flip);
    const __mmask16 mask = nk_first_lanes(d->inputs);
    for (uint32_t i = 0; i < count; ++i, to += d->depth, from += stride)
        _mm_storeu_si128((__m128i *)(void *)to, _mm_xor_si128(_mm_maskz_loadu_epi8(mask, from), flip));
}

/* Stores are whole, here too: masked ones are slow. */
static void nk_fill_pixels(const nk_dense *d, uint8_t *to, const uint8_t *from, size_t stride, uint32_t count) {
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
        _mm512_storeu_si512(to + at, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + at), flip));
    }
}

static void nk_fill_absent(const nk_dense *d, uint8_t *to, uint32_t count) {
    memset(to, (uint8_t)d->p->input_zero ^ d->flip, (size_t)count * d->depth);
    for (uint32_t i = 0; d->inputs < d->depth && i < count; ++i)
        memset(to + (size_t)i * d->depth + d->inputs, d->flip, d->depth - d->inputs);
}

/* sum += dot products of 4 unsigned and 4 signed bytes. Written out, because gcc 12 copies the accumulators of the intrinsic
 * to memory and back in every turn of a loop. */
static inline __attribute__((always_inline)) void dot4(__m512i *sum, __m512i bytes, __m512i weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(bytes), "v"(weights));
}

/* P pixels times G groups; accumulators of a pixel are ROW lanes apart, groups 2i and 2i + 1 paired. */
static inline __attribute__((always_inline)) void tile(const nk_dense *d, const nk_block *b, const uint8_t *panel,
                                                       const int8_t *weights, const __m512i *start, int32_t *acc, const int P,
                                                       const int G) {
    __m512i sum[12][4];
#pragma GCC unroll 12
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) sum[p][g] = start[g];
    const size_t step = b->step, group = d->group_bytes;
    for (uint32_t o = 0; o < b->outer; ++o, panel += b->outer_step) {
        const uint8_t *a = panel;
        for (uint32_t i = 0; i < b->length; ++i, a += NK_PACK, weights += NK_PACK * NK_PACK) {
            __m512i w[4];
#pragma GCC unroll 4
            for (int g = 0; g < G; ++g) w[g] = _mm512_loadu_si512(weights + g * group);
#pragma GCC unroll 12
            for (int p = 0; p < P; ++p) {
                int64_t eight;
                memcpy(&eight, a + p * step, sizeof eight);
                const __m512i x = _mm512_set1_epi64(eight);
#pragma GCC unroll 4
                for (int g = 0; g < G; ++g) dot4(&sum[p][g], x, w[g]);
            }
        }
    }
#pragma GCC unroll 12
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 2
        for (int g = 0; g < G; g += 2) {
            const __m512i left = sum[p][g], right = G > 1 ? sum[p][g + 1] : _mm512_setzero_si512();
            const __m512i even = _mm512_mask_shuffle_epi32(left, 0xAAAA, right, _MM_PERM_CDAB);
            const __m512i odd = _mm512_mask_shuffle_epi32(right, 0x5555, left, _MM_PERM_CDAB);
            _mm512_storeu_si512(acc + p * ROW + g * 8, _mm512_add_epi32(even, odd));
        }
    }
}

typedef void (*tile_function)(const nk_dense *d, const nk_block *b, const uint8_t *panel, const int8_t *weights,
                              const __m512i *start, int32_t *acc);

#define TILE(P, G)                                                                                                       \
    static void tile_##P##_##G(const nk_dense *d, const nk_block *b, const uint8_t *panel, const int8_t *weights,        \
                               const __m512i *start, int32_t *acc) {                                                     \
        tile(d, b, panel, weights, start, acc, P, G);                                                                    \
    }
TILE(1, 4) TILE(2, 4) TILE(3, 4) TILE(4, 4) TILE(5, 4) TILE(6, 4)
TILE(1, 2) TILE(2, 2) TILE(3, 2) TILE(4, 2) TILE(5, 2) TILE(6, 2) TILE(7, 2) TILE(8, 2) TILE(9, 2) TILE(10, 2) TILE(11, 2) TILE(12, 2)
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1) TILE(7, 1) TILE(8, 1) TILE(9, 1) TILE(10, 1) TILE(11, 1) TILE(12, 1)

/* 24 accumulators leave registers for four groups of weights and two broadcasts. */
static const tile_function tiles4[] = {NULL, tile_1_4, tile_2_4, tile_3_4, tile_4_4, tile_5_4, tile_6_4};
static const tile_function tiles2[] = {NULL,     tile_1_2, tile_2_2, tile_3_2,  tile_4_2,  tile_5_2, tile_6_2,
                                       tile_7_2, tile_8_2, tile_9_2, tile_10_2, tile_11_2, tile_12_2};
static const tile_function tiles1[] = {NULL,     tile_1_1, tile_2_1, tile_3_1,  tile_4_1,  tile_5_1, tile_6_1,
                                       tile_7_1, tile_8_1, tile_9_1, tile_10_1, tile_11_1, tile_12_1};

/* Pixels [from, from + count) of a panel row, in tiles of nearly equal size. */
static void tiles(const nk_dense *d, const nk_block *b, const uint8_t *panel, uint32_t count, const int8_t *weights,
                  const __m512i *start, int32_t *acc, uint32_t groups) {
    const tile_function *of = groups == 4 ? tiles4 : groups == 2 ? tiles2 : tiles1;
    uint32_t parts = nk_blocks(count, groups == 4 ? 6 : 12);
    for (; parts; --parts) {
        const uint32_t size = nk_blocks(count, parts);
        of[size](d, b, panel, weights, start, acc);
        panel += size * b->step, acc += (size_t)size * ROW, count -= size;
    }
}

static __attribute__((noinline)) void stage16(const nk_stage *stage, const nk_clamps *c, const nk_lanes16 *k, size_t channel,
                                              uint32_t channels, const int32_t *acc, uint32_t count, uint8_t *to, size_t pixel) {
    nk_stage16(stage, c, k, channel, channels, acc, ROW, count, to, pixel, 1);
}

/* `groups` (1, 2 or 4) groups of output channels from `channel` of this product on. */
static void slab(const nk_dense *d, const nk_block *b, const shared *s, uint32_t channel, uint32_t groups) {
    int32_t acc[CHUNK * ROW] __attribute__((aligned(64)));
    __m512i start[4];
    nk_lanes16 lanes[2];
    const uint32_t pairs = (groups + 1) / 2, outputs = d->outputs - channel;
    for (uint32_t g = 0; g < groups; ++g)
        start[g] = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(s->bias + channel + 8 * g)));
    for (uint32_t i = 0; i < pairs; ++i)
        lanes[i] = nk_lanes16_of(d->stage, d->first_out + channel + 16 * i, outputs - 16 * i, 1, s->most);
    const int8_t *weights = d->weights + channel / NK_PACK * d->group_bytes;
    for (uint32_t r = 0; r < b->rows; ++r) {
        const uint8_t *panel = b->panel + r * b->row_step;
        uint8_t *to = nk_row(d->out, b->image, b->y + (int32_t)r) + (size_t)b->x * d->out->pixel + d->first_out + channel;
        for (uint32_t x = 0; x < b->columns; x += CHUNK) {
            const uint32_t count = b->columns - x < CHUNK ? b->columns - x : CHUNK;
            tiles(d, b, panel + x * b->step, count, weights, start, acc, groups);
            for (uint32_t i = 0; i < pairs; ++i) {
                uint32_t channels = outputs - 16 * i;
                if (channels > 8 * groups - 16 * i) channels = 8 * groups - 16 * i;
                stage16(d->stage, &s->clamps, &lanes[i], d->first_out + channel + 16 * i, channels > 16 ? 16 : channels,
                        acc + 16 * i, count, to + (size_t)x * d->out->pixel + 16 * i, d->out->pixel);
            }
        }
    }
}

static void product(const nk_dense *d, const nk_block *b, const void *state) {
    const shared *s = state;
    const uint32_t groups = nk_blocks(d->outputs, NK_PACK);
    uint32_t at = 0;
    for (; at + 4 <= groups; at += 4) slab(d, b, s, 8 * at, 4);
    if (groups & 2) slab(d, b, s, 8 * at, 2), at += 2;
    if (groups & 1) slab(d, b, s, 8 * at, 1);
}

/* 128 times the sum of the weights of a group's 8 channels (0 for UINT8 input), from its two partial sums each. */
static inline __m256i total(__m512i sum) { return _mm512_cvtepi64_epi32(_mm512_add_epi32(sum, _mm512_srli_epi64(sum, 32))); }

static void store_bias(const nk_dense *d, shared *s, uint32_t c, __m256i sum) {
    const uint32_t left = d->outputs - c;
    const uint8_t *at = d->stage->table + 4 * (size_t)(d->first_out + c);
    const __m256i bias = _mm256_maskz_loadu_epi32(left < 8 ? (__mmask8)((1u << left) - 1u) : (__mmask8)0xFF, at);
    _mm256_storeu_si256((__m256i *)(void *)(s->bias + c), _mm256_sub_epi32(bias, sum));
}

/* Start values of the accumulators, four groups at a time; a missing group repeats the last. */
static void fill_bias(const nk_dense *d, shared *s) {
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
            for (uint32_t i = 0; i < 4; ++i) dot4(&sum[i], units, _mm512_loadu_si512(w[i] + at));
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; ++i)
            if (g + i < groups) store_bias(d, s, 8 * (g + i), total(sum[i]));
    }
}

/* The channels of `d`. */
static int run_slice(const nk_call *call, const nk_dense *d, shared *s) {
    fill_bias(d, s);
    for (uint32_t image = 0; image < d->out->batch; ++image)
        if (!nk_dense_run(d, image, call->row0, call->row1, product, s)) return 0;
    return 1;
}

static int run_thin(const nk_call *call, const nk_dense *d, shared *s) {
    int8_t weights[NK_THIN_BYTES] __attribute__((aligned(64)));
    const nk_dense thin = nk_thin(d, weights);
    return run_slice(call, &thin, s);
}

/* All of a call; `p` describes the window. */
static int run(const nk_call *call, const nk_operand *weights, const nk_conv2d_params *p, const nk_operand *in,
               const nk_operand *out, const nk_stage *stage) {
    const uint32_t groups = (uint32_t)p->groups, inputs = in->channels / groups, outputs = out->channels / groups;
    const uint64_t taps = (uint64_t)p->kernel_h * (uint32_t)p->kernel_w;
    if (call->units != NK_PACK || call->length != NK_PACK || p->weights_zero != 0 || inputs == 0 || out->width == 0) return 0;
    if (taps * inputs * 255 * 128 >= NK_ACC_LIMIT) return 0;
    nk_dense d = {.in = in, .out = out, .stage = stage, .p = p, .inputs = inputs};
    d.depth = nk_blocks(inputs, NK_PACK) * NK_PACK;
    d.group_bytes = (size_t)taps * d.depth * NK_PACK;
    d.flip = (uint8_t)nk_flip(in);
    shared s; /* filled part by part: clearing it would cost as much as a small call */
    s.clamps = nk_clamps_of(stage, out->dtype == NEUTRON_DTYPE_INT8);
    s.most = (int32_t)(taps * inputs * (nk_flip(in) ? 128 : 255) * 128);
    const int thin = nk_thin_pays(&d);
    const uint32_t slice = thin ? nk_thin_slice(&d) : NK_SLICE;
    for (uint32_t group = 0; group < groups; ++group) {
        for (uint32_t c = 0; c < outputs; c += slice) {
            d.first_in = group * inputs;
            d.first_out = group * outputs + c;
            d.outputs = outputs - c < slice ? outputs - c : slice;
            d.weights = (const int8_t *)weights->data + ((size_t)group * nk_blocks(outputs, NK_PACK) + c / NK_PACK) * d.group_bytes;
            if (!(thin ? run_thin : run_slice)(call, &d, &s)) return 0;
        }
    }
    return 1;
}

int nk_conv2d_avx512(const nk_call *call, const nk_stage *stage) {
    return run(call, &call->operands[NK_CONV2D_WEIGHTS], (const nk_conv2d_params *)(const void *)call->params,
               &call->operands[NK_CONV2D_INPUT], &call->operands[NK_CONV2D_OUTPUT], stage);
}

int nk_fully_connected_avx512(const nk_call *call, const nk_stage *stage) {
    const nk_fully_connected_params *p = (const nk_fully_connected_params *)(const void *)call->params;
    const nk_conv2d_params one = {.kernel_h = 1,   .kernel_w = 1,   .stride_h = 1, .stride_w = 1,
                                  .dilation_h = 1, .dilation_w = 1, .groups = 1,   .weights_zero = p->weights_zero};
    return run(call, &call->operands[NK_FULLY_CONNECTED_WEIGHTS], &one, &call->operands[NK_FULLY_CONNECTED_INPUT],
               &call->operands[NK_FULLY_CONNECTED_OUTPUT], stage);
}

#endif
