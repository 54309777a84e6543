/* depthwise_conv2d, 16 channels at a time: the bytes of up to four rows of a column are put side by
 * side, one channel per lane, so that VPDPBUSD adds a whole column of the window. Columns of a
 * 3-wide window are built once and slide along. Bytes are made unsigned and sums of weights
 * subtracted as in the dense products. */
#include "loops.h"
#include "memo.h"

#if NK_HAS_X86

#include <immintrin.h>

#include "quads_avx512.h"

#define LANES 16
#define CHUNK 48      /* pixels whose accumulators wait for the stage: 3 KiB */
#define MAX_KERNEL 16 /* rows of a window; larger ones are left to the definition */
#define MAX_QUADS 64
#define MAX_ROWS 96 /* input rows under the output rows done at a time */

/* What depends on the weights and table of 16 channels alone. */
typedef struct {
    nk_lanes16 lanes;
    __m512i start;
    __m512i weights[MAX_QUADS]; /* [columns][quads], of which as many as the window has exist */
} constants;

/* One block of 16 channels: what its pixels share. */
typedef struct {
    const nk_operand *in, *out;
    const nk_stage *stage;
    const nk_depthwise_conv2d_params *p;
    uint32_t channel, count;
    uint32_t quads; /* groups of four rows in a column */
    __mmask16 mask;
    __m512i flip, absent;
    const constants *k;
} block;

/* The rows under a window; those outside the image stand still on one pixel of absent values. */
typedef struct {
    const uint8_t *at[MAX_KERNEL];
    size_t step[MAX_KERNEL];
} rows;

/* Accumulators of consecutive pixels in memory, on their way to the stage. */
typedef struct {
    int32_t acc[CHUNK * LANES] __attribute__((aligned(64)));
    uint32_t count;
    uint8_t *to;
    nk_clamps clamps;
} pending;

static __attribute__((noinline)) void flush(const block *b, pending *q) {
    if (!q->count) return;
    nk_stage16(b->stage, &q->clamps, &b->k->lanes, b->channel, b->count, q->acc, LANES, q->count,
               q->to, b->out->pixel, 0);
    q->to += (size_t)q->count * b->out->pixel;
    q->count = 0;
}

/* 16 channels of a pixel as lanes; `part` when there are fewer. */
static inline __attribute__((always_inline)) __m512i widen(const rows *r, uint32_t row, int32_t x,
                                                           __mmask16 mask, const int part) {
    const uint8_t *at = r->at[row] + (size_t)x * r->step[row];
    return _mm512_cvtepu8_epi32(part ? _mm_maskz_loadu_epi8(mask, at)
                                     : _mm_loadu_si128((const __m128i *)(const void *)at));
}

/* Column x of rows [first, first + n), one per byte. */
static inline __attribute__((always_inline)) __m512i column(const rows *r, uint32_t first, int n,
                                                            int32_t x, __m512i flip, __mmask16 mask,
                                                            const int part) {
    __m512i bytes = _mm512_xor_si512(widen(r, first, x, mask, part), flip);
    if (n > 1)
        bytes = _mm512_xor_si512(bytes, _mm512_slli_epi32(widen(r, first + 1, x, mask, part), 8));
    if (n > 2)
        bytes = _mm512_xor_si512(bytes, _mm512_slli_epi32(widen(r, first + 2, x, mask, part), 16));
    if (n > 3)
        bytes = _mm512_xor_si512(bytes, _mm512_slli_epi32(widen(r, first + 3, x, mask, part), 24));
    return bytes;
}

/* `count` pixels from output column x on, for windows of 3 x 3 without dilation. */
static inline __attribute__((always_inline)) void slide(const block *b, const rows *of, int32_t x,
                                                        uint32_t count, int32_t *acc,
                                                        const int stride, const int part) {
    const rows r = {{of->at[0], of->at[1], of->at[2]}, {of->step[0], of->step[1], of->step[2]}};
    const __m512i w0 = b->k->weights[0], w1 = b->k->weights[1], w2 = b->k->weights[2];
    const __m512i start = b->k->start, flip = b->flip, absent = b->absent;
    const __mmask16 mask = b->mask;
    const uint32_t width = b->in->width;
    int32_t at = x * stride - b->p->pad_left;
#define COLUMN(x) ((uint32_t)(x) < width ? column(&r, 0, 3, (x), flip, mask, part) : absent)
    __m512i c0 = COLUMN(at), c1 = COLUMN(at + 1);
    for (uint32_t i = 0; i < count; ++i, at += stride, acc += LANES) {
        const __m512i c2 = COLUMN(at + 2);
        __m512i sum = _mm512_dpbusd_epi32(start, c0, w0);
        sum = _mm512_dpbusd_epi32(sum, c1, w1);
        _mm512_store_si512(acc, _mm512_dpbusd_epi32(sum, c2, w2));
        c0 = stride == 1 ? c1 : c2;
        if (stride == 1) c1 = c2;
        else if (i + 1 < count) c1 = COLUMN(at + 3);
    }
#undef COLUMN
}

/* The same for any window. */
static void any_window(const block *b, const rows *r, int32_t x, uint32_t count, int32_t *acc) {
    const nk_depthwise_conv2d_params *p = b->p;
    for (uint32_t i = 0; i < count; ++i, ++x, acc += LANES) {
        const __m512i *w = b->k->weights;
        __m512i sum = b->k->start;
        for (int32_t kx = 0; kx < p->kernel_w; ++kx) {
            const int32_t at = x * p->stride_w - p->pad_left + kx * p->dilation_w;
            const int inside = (uint32_t)at < b->in->width;
            for (uint32_t quad = 0; quad < b->quads; ++quad) {
                const int32_t left = p->kernel_h - 4 * (int32_t)quad;
                sum = _mm512_dpbusd_epi32(
                    sum, inside ? column(r, 4 * quad, left, at, b->flip, b->mask, 1) : b->absent,
                    *w++);
            }
        }
        _mm512_store_si512(acc, sum);
    }
}

static void output_row(const block *b, const rows *r, pending *q) {
    const nk_depthwise_conv2d_params *p = b->p;
    const int small = p->kernel_h == 3 && p->kernel_w == 3 && p->dilation_w == 1,
              full = b->count == LANES;
    for (uint32_t x = 0; x < b->out->width;) {
        const uint32_t room = CHUNK - q->count, left = b->out->width - x,
                       n = left < room ? left : room;
        int32_t *acc = q->acc + (size_t)q->count * LANES;
        if (small && p->stride_w == 1 && full) slide(b, r, (int32_t)x, n, acc, 1, 0);
        else if (small && p->stride_w == 2 && full) slide(b, r, (int32_t)x, n, acc, 2, 0);
        else if (small && p->stride_w == 1) slide(b, r, (int32_t)x, n, acc, 1, 1);
        else if (small && p->stride_w == 2) slide(b, r, (int32_t)x, n, acc, 2, 1);
        else any_window(b, r, (int32_t)x, n, acc);
        q->count += n;
        x += n;
        if (q->count == CHUNK) flush(b, q);
    }
}

/* The weights of one tap for 16 channels, in lanes. */
static inline __m512i tap(const int8_t *low, const int8_t *high, size_t at) {
    int64_t halves[2];
    memcpy(&halves[0], low + 8 * at, 8);
    memcpy(&halves[1], high + 8 * at, 8);
    return _mm512_cvtepu8_epi32(_mm_set_epi64x(halves[1], halves[0]));
}

/* Weights of a column side by side, and the accumulators' start: bias - 128 * sum(w). */
static void fill_constants(const block *b, const nk_clamps *clamps, const int8_t *packed,
                           constants *k) {
    const uint32_t kh = (uint32_t)b->p->kernel_h, kw = (uint32_t)b->p->kernel_w;
    const size_t taps = (size_t)kh * kw;
    const int8_t *low = packed + b->channel / 8 * taps * 8,
                 *high = low + (b->count > 8 ? taps * 8 : 0);
    const __m512i bias =
        _mm512_maskz_loadu_epi32(b->mask, b->stage->table + 4 * (size_t)b->channel);
    __m512i sum = _mm512_setzero_si512();
    for (uint32_t kx = 0; kx < kw; ++kx) {
        for (uint32_t quad = 0; quad < b->quads; ++quad) {
            const size_t at = (size_t)4 * quad * kw + kx;
            const uint32_t left = kh - 4 * quad;
            __m512i bytes = tap(low, high, at);
            if (left > 1)
                bytes = _mm512_or_si512(bytes, _mm512_slli_epi32(tap(low, high, at + kw), 8));
            if (left > 2)
                bytes = _mm512_or_si512(bytes, _mm512_slli_epi32(tap(low, high, at + 2 * kw), 16));
            if (left > 3)
                bytes = _mm512_or_si512(bytes, _mm512_slli_epi32(tap(low, high, at + 3 * kw), 24));
            k->weights[kx * b->quads + quad] = bytes;
            sum = _mm512_dpbusd_epi32(sum, b->flip, bytes);
        }
    }
    k->start = _mm512_sub_epi32(bias, sum);
    k->lanes = nk_lanes16_of(b->stage, clamps, b->channel, b->count, 0, (int32_t)taps * 255 * 128);
}

/* Rows of an operand from y on, NULL outside the image; finding them once saves each block of
 * channels the divisions. */
static void find_rows(const nk_operand *o, uint32_t image, int32_t y, uint32_t count,
                      uint8_t **found) {
    for (uint32_t i = 0; i < count; ++i, ++y)
        found[i] = y >= 0 && (uint32_t)y < o->height ? nk_row(o, image, y) : NULL;
}

/* Output rows [y, y + count) of one block of channels; `in` are the rows under them, `out` their
 * own. */
static void block_rows(const block *b, pending *q, uint8_t *const *in, uint8_t *const *out,
                       uint32_t count, const uint8_t *absent) {
    const nk_depthwise_conv2d_params *p = b->p;
    for (uint32_t i = 0; i < count; ++i) {
        uint8_t *to = out[i] + b->channel;
        if (q->count && to != q->to + (size_t)q->count * b->out->pixel) flush(b, q);
        if (!q->count) q->to = to;
        rows r;
        for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
            const uint8_t *row = in[i * (uint32_t)p->stride_h + (uint32_t)(ky * p->dilation_h)];
            r.at[ky] = row ? row + b->channel : absent;
            r.step[ky] = row ? b->in->pixel : 0;
        }
        output_row(b, &r, q);
    }
    flush(b, q);
}

/* What a call's blocks share. */
typedef struct {
    block b;
    pending q;
    const int8_t *weights;
    uint8_t absent[NK_QUAD_BYTES];
    uint8_t *kept; /* constants of all blocks, one after the other; NULL: none */
    int fresh;
    uint8_t *under[MAX_ROWS], *own[MAX_ROWS]; /* rows of input and output at hand */
    uint32_t rows;                            /* of output */
} work;

/* Pixels whose channels fill 64 bytes; 0: blocks of 64 bytes are not for such a call. */
static uint32_t quad_pixels(const block *b, const nk_clamps *c) {
    const nk_depthwise_conv2d_params *p = b->p;
    const uint32_t channels = b->out->channels, pixels = NK_QUAD_BYTES / channels;
    if (!c->fast || b->stage->lut || p->kernel_h != 3 || p->kernel_w != 3 || p->dilation_w != 1 ||
        p->stride_w > 2)
        return 0;
    if (channels >= NK_QUAD_BYTES) return 1;
    return channels * pixels == NK_QUAD_BYTES && channels % 8 == 0 && p->stride_w == 1 &&
                   b->in->pixel == channels && b->out->pixel == channels && b->out->width >= pixels
               ? pixels
               : 0;
}

/* Rows at hand of a block of 64 bytes; 0 when its channels take the integer form. */
static int quad_rows(const work *w, const nk_quads *k, uint32_t channel, uint32_t pixels) {
    const block *b = &w->b;
    const nk_depthwise_conv2d_params *p = b->p;
    if (!k->usable) return 0;
    nk_quad_rows r;
    r.width = (int32_t)b->in->width;
    r.flip = b->flip, r.absent = _mm512_set1_epi8((char)p->input_zero);
    r.pixel = b->out->pixel, r.columns = b->out->width;
    r.stride = p->stride_w, r.pad = p->pad_left;
    for (uint32_t i = 0; i < w->rows; ++i) {
        for (uint32_t ky = 0; ky < 3; ++ky) {
            const uint8_t *row = w->under[i * (uint32_t)p->stride_h + ky * (uint32_t)p->dilation_h];
            r.at[ky] = row ? row + channel : w->absent;
            r.step[ky] = row ? b->in->pixel : 0;
        }
        r.to = w->own[i] + channel;
        nk_quad_row(k, &w->q.clamps, &r, pixels);
    }
    return 1;
}

/* Rows at hand of blocks of 16 channels from `channel` to `end`. */
static void lane_blocks(work *w, uint32_t channel, uint32_t end, uint8_t *kept, size_t size) {
    block *b = &w->b;
    for (b->channel = channel; b->channel < end; b->channel += LANES) {
        constants single;
        b->count = end - b->channel < LANES ? end - b->channel : LANES;
        b->mask = nk_first_lanes(b->count);
        constants *k = kept ? (constants *)(void *)kept : &single;
        if (w->fresh || !kept) fill_constants(b, &w->q.clamps, w->weights, k);
        if (kept) kept += size;
        b->k = k;
        block_rows(b, &w->q, w->under, w->own, w->rows, w->absent);
    }
}

/* Channels from which on the last block of 64 bytes goes back over earlier ones, rather than leave
 * the rest to lanes. */
#define GO_BACK 32

/* Rows at hand of all channels; `pixels` as above. */
static void all_blocks(work *w, uint32_t pixels, size_t size) {
    const uint32_t channels = w->b.out->channels,
                   period = channels < NK_QUAD_BYTES ? channels : NK_QUAD_BYTES;
    uint8_t *kept = w->kept;
    uint32_t channel = 0;
    while (pixels && channel < channels) {
        const uint32_t left = channels - channel;
        nk_quads single;
        if (left < period && (left < GO_BACK || channels % 8)) break;
        if (left < period) channel = channels - period;
        nk_quads *k = kept ? (nk_quads *)(void *)kept : &single;
        if (w->fresh || !kept)
            nk_quads_fill(w->b.stage, &w->q.clamps, w->weights, channel, period, w->b.flip, k);
        if (kept) kept += sizeof *k;
        if (!quad_rows(w, k, channel, pixels))
            lane_blocks(w, channel, channel + period, NULL, size);
        channel += period;
    }
    lane_blocks(w, channel, channels, kept, size);
}

int nk_depthwise_conv2d_avx512(const nk_call *call, const nk_stage *stage) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_depthwise_conv2d_params *p =
        (const nk_depthwise_conv2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D_INPUT],
                     *out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT];
    const int32_t extent = (p->kernel_h - 1) * p->dilation_h + 1;
    if (call->units != 8 || p->depth_multiplier != 1 || p->weights_zero != 0) return 0;
    if (p->kernel_h > MAX_KERNEL || extent > MAX_ROWS) return 0;
    work w; /* filled part by part: clearing it would cost as much as a small call */
    w.b.in = in, w.b.out = out, w.b.stage = stage, w.b.p = p;
    w.b.quads = nk_blocks((uint32_t)p->kernel_h, 4);
    if ((uint64_t)p->kernel_w * w.b.quads > MAX_QUADS) return 0;
    w.weights = (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS].data;
    memset(w.absent, (uint8_t)p->input_zero, sizeof w.absent);
    w.b.flip = _mm512_set1_epi8((char)nk_flip(in));
    w.b.absent = _mm512_set1_epi8((char)((uint8_t)p->input_zero ^ (uint8_t)nk_flip(in)));
    w.q.count = 0;
    w.q.clamps = nk_clamps_of(stage, out->dtype == NEUTRON_DTYPE_INT8);
    const uint32_t pixels = quad_pixels(&w.b, &w.q.clamps);
    const size_t size =
        offsetof(constants, weights) + (size_t)p->kernel_w * w.b.quads * sizeof(__m512i);
    const size_t all = nk_blocks(out->channels, LANES) * size +
                       (pixels ? (out->channels / NK_QUAD_BYTES + 1) * sizeof(nk_quads) : 0);
    w.fresh = 1;
    w.kept = nk_memo(call, &call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS],
                     &call->operands[NK_DEPTHWISE_CONV2D_TABLE], 0, all,
                     call->row1 - call->row0 < (int32_t)out->height, &w.fresh);
    const int32_t most = (MAX_ROWS - extent) / p->stride_h + 1; /* output rows at a time */
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; y += most) {
            const int32_t count = nk_min(most, call->row1 - y);
            find_rows(in, image, y * p->stride_h - p->pad_top,
                      (uint32_t)((count - 1) * p->stride_h + extent), w.under);
            find_rows(out, image, y, (uint32_t)count, w.own);
            w.rows = (uint32_t)count;
            all_blocks(&w, pixels, size);
        }
    }
    return 1;
}

#endif
