/* depthwise_conv2d, 8 channels at a time: the values of two rows of a column are put side by side,
 * one channel per lane, so that a 16-bit multiply-add takes two taps; a row without a partner meets
 * weight 0. Columns of a 3-wide window are built once and slide along. */
#include "loops.h"

#if NK_HAS_X86

#include <immintrin.h>

#include "stage16_avx2.h"

#define LANES 8
#define CHUNK 64    /* pixels whose accumulators wait for the stage: 4 KiB with both halves */
#define MAX_ROWS 16 /* rows of a window; larger ones are left to the definition */
#define MAX_PAIRS 64

/* One block of 8 channels: what its pixels share. */
typedef struct {
    const nk_operand *in, *out;
    const nk_depthwise_conv2d_params *p;
    uint32_t channel, count;
    uint32_t pairs; /* groups of two rows in a column */
    int is_signed;
    __m256i start, absent;
    __m256i weights[MAX_PAIRS]; /* [columns][pairs] */
} block;

/* The rows under a window; those outside the image stand still on one pixel of absent values. */
typedef struct {
    const uint8_t *at[MAX_ROWS];
    size_t step[MAX_ROWS];
} rows;

static inline __attribute__((always_inline)) __m128i bytes8(const block *b, const rows *r,
                                                            uint32_t row, int32_t x) {
    const uint8_t *at = r->at[row] + (size_t)x * r->step[row];
    uint64_t eight = 0;
    if (b->count == LANES) memcpy(&eight, at, sizeof eight);
    else memcpy(&eight, at, b->count);
    return _mm_cvtsi64_si128((int64_t)eight);
}

/* Column x of row `first` and, if `two`, of the next one, as INT16 pairs. */
static inline __attribute__((always_inline)) __m256i column(const block *b, const rows *r,
                                                            uint32_t first, int two, int32_t x,
                                                            const int is_signed) {
    if ((uint32_t)x >= b->in->width) return b->absent;
    const __m128i one = bytes8(b, r, first, x);
    if (!two) return is_signed ? _mm256_cvtepi8_epi32(one) : _mm256_cvtepu8_epi32(one);
    const __m128i both = _mm_unpacklo_epi8(one, bytes8(b, r, first + 1, x));
    return is_signed ? _mm256_cvtepi8_epi16(both) : _mm256_cvtepu8_epi16(both);
}

static inline __m256i plus(__m256i sum, __m256i x, __m256i w) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
}

/* 8 channels of a pixel; `part` when there are fewer. */
static inline __attribute__((always_inline)) __m128i eight(const uint8_t *at, uint32_t count,
                                                           const int part) {
    if (!part) return _mm_loadl_epi64((const __m128i *)(const void *)at);
    uint64_t bytes = 0;
    memcpy(&bytes, at, count);
    return _mm_cvtsi64_si128((int64_t)bytes);
}

/* `count` pixels from output column x on, for windows of 3 x 3 without dilation over INT8. */
static inline __attribute__((always_inline)) void slide(const block *b, const rows *r, int32_t x,
                                                        uint32_t count, int32_t *acc,
                                                        const int stride, const int part) {
    const __m256i w0 = b->weights[0], w1 = b->weights[1], w2 = b->weights[2];
    const __m256i w3 = b->weights[3], w4 = b->weights[4], w5 = b->weights[5];
    const __m256i start = b->start, absent = b->absent;
    const uint8_t *top = r->at[0], *middle = r->at[1], *bottom = r->at[2];
    const size_t s0 = r->step[0], s1 = r->step[1], s2 = r->step[2];
    const uint32_t width = b->in->width, n = b->count;
    int32_t at = x * stride - b->p->pad_left;
#define INSIDE(x) ((uint32_t)(x) < width)
#define BOTH(x) \
    _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(eight(top + (size_t)(x) * s0, n, part), \
                                           eight(middle + (size_t)(x) * s1, n, part)))
#define UPPER(x) (INSIDE(x) ? BOTH(x) : absent)
#define LOWER(x) \
    (INSIDE(x) ? _mm256_cvtepi8_epi32(eight(bottom + (size_t)(x) * s2, n, part)) : absent)
    __m256i a0 = UPPER(at), a1 = UPPER(at + 1), b0 = LOWER(at), b1 = LOWER(at + 1);
    for (uint32_t i = 0; i < count; ++i, at += stride, acc += 16) {
        const __m256i a2 = UPPER(at + 2), b2 = LOWER(at + 2);
        const __m256i left = plus(plus(start, a0, w0), b0, w1),
                      right = plus(_mm256_madd_epi16(a2, w4), b2, w5);
        const __m256i centre = plus(_mm256_madd_epi16(a1, w2), b1, w3);
        _mm256_store_si256((__m256i *)(void *)acc,
                           _mm256_add_epi32(_mm256_add_epi32(left, centre), right));
        a0 = stride == 1 ? a1 : a2, b0 = stride == 1 ? b1 : b2;
        if (stride == 1) a1 = a2, b1 = b2;
        else if (i + 1 < count) a1 = UPPER(at + 3), b1 = LOWER(at + 3);
    }
#undef LOWER
#undef UPPER
#undef BOTH
#undef INSIDE
}

/* The same for any window. */
static void any_window(const block *b, const rows *r, int32_t x, uint32_t count, int32_t *acc) {
    const nk_depthwise_conv2d_params *p = b->p;
    for (uint32_t i = 0; i < count; ++i, ++x, acc += 16) {
        const __m256i *w = b->weights;
        __m256i sum = b->start;
        for (int32_t kx = 0; kx < p->kernel_w; ++kx) {
            const int32_t at = x * p->stride_w - p->pad_left + kx * p->dilation_w;
            for (uint32_t pair = 0; pair < b->pairs; ++pair)
                sum = plus(
                    sum,
                    column(b, r, 2 * pair, 2 * (int32_t)pair + 1 < p->kernel_h, at, b->is_signed),
                    *w++);
        }
        _mm256_storeu_si256((__m256i *)(void *)acc, sum);
    }
}

static void columns(const block *b, const rows *r, int32_t x, uint32_t count, int32_t *acc) {
    const nk_depthwise_conv2d_params *p = b->p;
    const int small = p->kernel_h == 3 && p->kernel_w == 3 && p->dilation_w == 1 && b->is_signed,
              full = b->count == LANES;
    if (small && p->stride_w == 1 && full) slide(b, r, x, count, acc, 1, 0);
    else if (small && p->stride_w == 2 && full) slide(b, r, x, count, acc, 2, 0);
    else if (small && p->stride_w == 1) slide(b, r, x, count, acc, 1, 1);
    else if (small && p->stride_w == 2) slide(b, r, x, count, acc, 2, 1);
    else any_window(b, r, x, count, acc);
}

/* Weights of two rows side by side, and the accumulators' start: bias + 2^31. */
static void fill_block(block *b, const nk_stage *stage, const int8_t *packed) {
    const nk_depthwise_conv2d_params *p = b->p;
    const int8_t *from =
        packed + (size_t)b->channel * (uint32_t)p->kernel_h * (uint32_t)p->kernel_w;
    for (int32_t kx = 0; kx < p->kernel_w; ++kx) {
        for (uint32_t pair = 0; pair < b->pairs; ++pair) {
            const int8_t *upper = from + ((2 * (int32_t)pair) * p->kernel_w + kx) * LANES,
                         *lower = upper + p->kernel_w * LANES;
            const int two = 2 * (int32_t)pair + 1 < p->kernel_h;
            const __m128i one = _mm_loadl_epi64((const __m128i *)(const void *)upper);
            const __m128i other =
                two ? _mm_loadl_epi64((const __m128i *)(const void *)lower) : _mm_setzero_si128();
            b->weights[(uint32_t)kx * b->pairs + pair] =
                _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(one, other));
        }
    }
    const __m256i bias = nk_column8(stage->table + 4 * (size_t)b->channel, b->count);
    b->start = _mm256_add_epi32(bias, _mm256_set1_epi32(INT32_MIN));
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

/* Accumulators of consecutive pixels in memory, on their way to the stage: two blocks of 8
 * channels, so that it sees 16. */
typedef struct {
    int32_t acc[CHUNK * 16] __attribute__((aligned(32)));
    const nk_stage *stage;
    nk_clamps8 clamps;
    int fits;
    nk_lanes16 lanes;
    uint32_t count;
    uint8_t *to;
} pending;

static void flush(pending *q, const block b[2]) {
    if (!q->count) return;
    const size_t pixel = b[0].out->pixel;
    nk_stage16(q->stage, &q->clamps, q->fits, &q->lanes, b[0].channel, b[0].count + b[1].count,
               q->acc, 16, q->count, q->to, pixel);
    q->to += q->count * pixel;
    q->count = 0;
}

static void output_row(pending *q, const block b[2], uint32_t image, int32_t y,
                       const uint8_t *absent) {
    const nk_operand *out = b[0].out;
    uint8_t *to = nk_row(out, image, y) + b[0].channel;
    if (to != q->to + (size_t)q->count * out->pixel) flush(q, b);
    if (!q->count) q->to = to;
    rows r[2];
    for (int h = 0; h < 2 && b[h].count; ++h) r[h] = rows_at(&b[h], image, y, absent);
    for (uint32_t x = 0; x < out->width;) {
        const uint32_t room = CHUNK - q->count, left = out->width - x,
                       n = left < room ? left : room;
        int32_t *acc = q->acc + (size_t)q->count * 16;
        for (int h = 0; h < 2 && b[h].count; ++h)
            columns(&b[h], &r[h], (int32_t)x, n, acc + LANES * h);
        q->count += n;
        x += n;
        if (q->count == CHUNK) flush(q, b);
    }
}

int nk_depthwise_conv2d_avx2(const nk_call *call, const nk_stage *stage) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_depthwise_conv2d_params *p =
        (const nk_depthwise_conv2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_DEPTHWISE_CONV2D_INPUT],
                     *out = &call->operands[NK_DEPTHWISE_CONV2D_OUTPUT];
    if (call->units != LANES || p->depth_multiplier != 1 || p->weights_zero != 0 ||
        p->kernel_h > MAX_ROWS)
        return 0;
    const uint32_t pairs = nk_blocks((uint32_t)p->kernel_h, 2);
    if ((uint64_t)p->kernel_w * pairs > MAX_PAIRS) return 0;
    pending q;
    q.stage = stage, q.count = 0, q.to = NULL;
    q.fits = nk_clamps8_of(&q.clamps, out->dtype == NEUTRON_DTYPE_INT8, stage->zero, stage->low,
                           stage->high);
    uint8_t absent[LANES];
    memset(absent, (uint8_t)p->input_zero, sizeof absent);
    for (uint32_t channel = 0; channel < out->channels; channel += 2 * LANES) {
        block b[2]; /* filled part by part: clearing them would cost as much as a small call */
        for (uint32_t h = 0; h < 2; ++h) {
            const uint32_t first = channel + LANES * h,
                           left = out->channels > first ? out->channels - first : 0;
            b[h].in = in, b[h].out = out, b[h].p = p, b[h].pairs = pairs;
            b[h].channel = first, b[h].count = left < LANES ? left : LANES;
            b[h].is_signed = nk_flip(in) != 0;
            b[h].absent = _mm256_set1_epi16((int16_t)p->input_zero);
            if (b[h].count)
                fill_block(&b[h], stage,
                           (const int8_t *)call->operands[NK_DEPTHWISE_CONV2D_WEIGHTS].data);
        }
        q.lanes = nk_lanes16_of(stage, &q.clamps, channel, b[0].count + b[1].count,
                                p->kernel_h * p->kernel_w * 255 * 128);
        for (uint32_t image = 0; image < out->batch; ++image)
            for (int32_t y = call->row0; y < call->row1; ++y) output_row(&q, b, image, y, absent);
        flush(&q, b);
    }
    return 1;
}

#endif
