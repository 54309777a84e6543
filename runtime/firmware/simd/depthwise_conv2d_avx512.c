/* depthwise_conv2d, 16 channels at a time: the bytes of up to four rows of a column are put side by side, one channel per
 * lane, so that VPDPBUSD adds a whole column of the window. Columns of a 3-wide window are built once and slide along. Bytes
 * are made unsigned and sums of weights subtracted as in conv2d. */
#include "loops.h"

#if NK_HAS_SIMD

#include <immintrin.h>

#include "stage_avx512.h"

#define LANES 16
#define CHUNK 48 /* pixels whose accumulators wait for the stage: 3 KiB */
#define MAX_ROWS 16 /* rows of a window; larger ones are left to the definition */
#define MAX_QUADS 64

/* One block of 16 channels: what its pixels share. */
typedef struct {
    const nk_operand *in, *out;
    const nk_stage *stage;
    const nk_depthwise_conv2d_params *p;
    uint32_t channel, count;
    uint32_t quads; /* groups of four rows in a column */
    __mmask16 mask;
    __m512i start, flip, absent;
    __m512i weights[MAX_QUADS]; /* [columns][quads] */
} block;

/* The rows under a window; those outside the image stand still on one pixel of absent values. */
typedef struct {
    const uint8_t *at[MAX_ROWS];
    size_t step[MAX_ROWS];
} rows;

/* Accumulators of consecutive pixels in memory, on their way to the stage. */
typedef struct {
    int32_t acc[CHUNK * LANES] __attribute__((aligned(64)));
    uint32_t count;
    uint8_t *to;
    nk_clamps clamps;
    nk_lanes16 lanes;
} pending;

static void flush(const block *b, pending *q) {
    nk_stage16(b->stage, &q->clamps, &q->lanes, b->channel, b->count, q->acc, LANES, q->count, q->to, b->out->pixel);
    q->to += (size_t)q->count * b->out->pixel;
    q->count = 0;
}

/* 16 channels of a pixel as lanes; `part` when there are fewer. */
static inline __attribute__((always_inline)) __m512i widen(const block *b, const rows *r, uint32_t row, int32_t x, const int part) {
    const uint8_t *at = r->at[row] + (size_t)x * r->step[row];
    return _mm512_cvtepu8_epi32(part ? _mm_maskz_loadu_epi8(b->mask, at) : _mm_loadu_si128((const __m128i *)(const void *)at));
}

/* Column x of rows [first, first + n), one per byte. */
static inline __attribute__((always_inline)) __m512i column(const block *b, const rows *r, uint32_t first, int n, int32_t x,
                                                            const int part) {
    if ((uint32_t)x >= b->in->width) return b->absent;
    __m512i bytes = _mm512_xor_si512(widen(b, r, first, x, part), b->flip);
    if (n > 1) bytes = _mm512_xor_si512(bytes, _mm512_slli_epi32(widen(b, r, first + 1, x, part), 8));
    if (n > 2) bytes = _mm512_xor_si512(bytes, _mm512_slli_epi32(widen(b, r, first + 2, x, part), 16));
    if (n > 3) bytes = _mm512_xor_si512(bytes, _mm512_slli_epi32(widen(b, r, first + 3, x, part), 24));
    return bytes;
}

/* `count` pixels from output column x on, for windows of 3 x 3 without dilation. */
static inline __attribute__((always_inline)) void slide(const block *b, const rows *r, int32_t x, uint32_t count, int32_t *acc,
                                                        const int stride, const int part) {
    const __m512i w0 = b->weights[0], w1 = b->weights[1], w2 = b->weights[2];
    int32_t at = x * stride - b->p->pad_left;
    __m512i c0 = column(b, r, 0, 3, at, part), c1 = column(b, r, 0, 3, at + 1, part);
    for (uint32_t i = 0; i < count; ++i, at += stride, acc += LANES) {
        const __m512i c2 = column(b, r, 0, 3, at + 2, part);
        __m512i sum = _mm512_dpbusd_epi32(b->start, c0, w0);
        sum = _mm512_dpbusd_epi32(sum, c1, w1);
        _mm512_store_si512(acc, _mm512_dpbusd_epi32(sum, c2, w2));
        c0 = stride == 1 ? c1 : c2;
        c1 = stride == 1 ? c2 : column(b, r, 0, 3, at + 3, part);
    }
}

/* The same for any window. */
static void any_window(const block *b, const rows *r, int32_t x, uint32_t count, int32_t *acc) {
    const nk_depthwise_conv2d_params *p = b->p;
    for (uint32_t i = 0; i < count; ++i, ++x, acc += LANES) {
        const __m512i *w = b->weights;
        __m512i sum = b->start;
        for (int32_t kx = 0; kx < p->kernel_w; ++kx) {
            const int32_t at = x * p->stride_w - p->pad_left + kx * p->dilation_w;
            for (uint32_t quad = 0; quad < b->quads; ++quad) {
                const int32_t left = p->kernel_h - 4 * (int32_t)quad;
                sum = _mm512_dpbusd_epi32(sum, column(b, r, 4 * quad, left, at, 1), *w++);
            }
        }
        _mm512_store_si512(acc, sum);
    }
}

static void output_row(const block *b, const rows *r, pending *q) {
    const nk_depthwise_conv2d_params *p = b->p;
    const int small = p->kernel_h == 3 && p->kernel_w == 3 && p->dilation_w == 1;
    for (uint32_t x = 0; x < b->out->width;) {
        const uint32_t room = CHUNK - q->count, left = b->out->width - x, n = left < room ? left : room;
        int32_t *acc = q->acc + (size_t)q->count * LANES;
        if (small && p->stride_w == 1 && b->count == LANES) slide(b, r, (int32_t)x, n, acc, 1, 0);
        else if (small && p->stride_w == 2 && b->count == LANES) slide(b, r, (int32_t)x, n, acc, 2, 0);
        else if (small && p->stride_w == 1) slide(b, r, (int32_t)x, n, acc, 1, 1);
        else if (small && p->stride_w == 2) slide(b, r, (int32_t)x, n, acc, 2, 1);
        else any_window(b, r, (int32_t)x, n, acc);
        q->count += n;
        x += n;
        if (q->count == CHUNK) flush(b, q);
    }
}

/* Weights of a column side by side, and the accumulators' start: bias - 128 * sum(w) + 2^31. */
static void fill_weights(block *b, const int8_t *packed) {
    const nk_depthwise_conv2d_params *p = b->p;
    const size_t taps = (size_t)p->kernel_h * (uint32_t)p->kernel_w;
    const int8_t *low = packed + b->channel / 8 * taps * 8, *high = low + (b->count > 8 ? taps * 8 : 0);
    const __m512i bias = _mm512_maskz_loadu_epi32(b->mask, b->stage->table + 4 * (size_t)b->channel);
    __m512i sum = _mm512_setzero_si512();
    for (int32_t kx = 0; kx < p->kernel_w; ++kx) {
        for (uint32_t quad = 0; quad < b->quads; ++quad) {
            __m512i bytes = _mm512_setzero_si512();
            for (int32_t j = 0; j < 4 && 4 * (int32_t)quad + j < p->kernel_h; ++j) {
                const size_t tap = (size_t)(4 * (int32_t)quad + j) * (uint32_t)p->kernel_w + (uint32_t)kx;
                int64_t halves[2];
                memcpy(&halves[0], low + 8 * tap, 8);
                memcpy(&halves[1], high + 8 * tap, 8);
                const __m512i wide = _mm512_cvtepu8_epi32(_mm_set_epi64x(halves[1], halves[0]));
                bytes = _mm512_or_si512(bytes, _mm512_sll_epi32(wide, _mm_cvtsi32_si128(8 * j)));
            }
            b->weights[(uint32_t)kx * b->quads + quad] = bytes;
            sum = _mm512_dpbusd_epi32(sum, b->flip, bytes);
        }
    }
    b->start = _mm512_add_epi32(_mm512_sub_epi32(bias, sum), _mm512_set1_epi32(INT32_MIN));
}

static rows rows_at(const block *b, uint32_t image, int32_t y, const uint8_t *absent) {
    rows r;
    for (int32_t ky = 0; ky < b->p->kernel_h; ++ky) {
        const int32_t iy = y * b->p->stride_h - b->p->pad_top + ky * b->p->dilation_h;
        const int inside = iy >= 0 && (uint32_t)iy < b->in->height;
        r.at[ky] = inside ? nk_row(b->in, image, iy) + b->channel : absent;
        r.step[ky] = inside ? b->in->pixel : 0;
    }
    return r;
}

int nk_depthwise_conv2d_avx512(const nk_call *call, const nk_stage *stage) {
    const nk_depthwise_conv2d_params *p = (const nk_depthwise_conv2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D_INPUT], *out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT];
    if (call->units != 8 || p->depth_multiplier != 1 || p->weights_zero != 0 || p->kernel_h > MAX_ROWS) return 0;
    block b = {.in = in, .out = out, .stage = stage, .p = p, .quads = nk_blocks((uint32_t)p->kernel_h, 4)};
    if ((uint64_t)p->kernel_w * b.quads > MAX_QUADS) return 0;
    uint8_t absent[LANES];
    memset(absent, (uint8_t)p->input_zero, sizeof absent);
    b.flip = _mm512_set1_epi8((char)nk_flip(in));
    b.absent = _mm512_set1_epi8((char)((uint8_t)p->input_zero ^ (uint8_t)nk_flip(in)));
    pending q = {.count = 0, .clamps = nk_clamps_of(stage, out->dtype == NEUTRON_DTYPE_INT8)};
    for (b.channel = 0; b.channel < out->channels; b.channel += LANES) {
        b.count = out->channels - b.channel < LANES ? out->channels - b.channel : LANES;
        b.mask = nk_first_lanes(b.count);
        fill_weights(&b, (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS].data);
        q.lanes = nk_lanes16_of(stage, b.channel, b.count, 0);
        for (uint32_t image = 0; image < out->batch; ++image) {
            for (int32_t y = call->row0; y < call->row1; ++y) {
                uint8_t *to = nk_row(out, image, y) + b.channel;
                if (q.count && to != q.to + (size_t)q.count * out->pixel) flush(&b, &q);
                if (!q.count) q.to = to;
                const rows r = rows_at(&b, image, y, absent);
                output_row(&b, &r, &q);
            }
        }
        flush(&b, &q);
    }
    return 1;
}

#endif
