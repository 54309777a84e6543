/* Convolutions of 3 x 3 with a quarter of the products: Winograd's F(4 x 4, 3 x 3), in integers and
 * exact. Four by four outputs come from six by six inputs as A' [(G w G') * (B' x B)] A, where * is
 * taken element by element and summed over the input channels (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks", 2015).
 *
 * Why it is exact. G has fractions; 24 G has none. Its last row is taken 12 times, not 24, and the
 * other half is made up for behind the products. B' grows a byte to 100 * 255 at most and
 * 24 G a weight to 144 * 128: both fit INT16. Everything behind that is added and multiplied modulo
 * 2^32, so that 576 times the accumulator comes out whatever happened on the way, if only that fits
 * INT32. Where the weights are too large for that, the inverse of 9 modulo 2^32 makes it 64 times,
 * which fits where the accumulator is below 2^25. The requantize stage's float form multiplies by a
 * 576th or a 64th of its factor, rounded once, which is all that its proof asks for; its integer
 * form divides first, by the same inverse and a shift.
 *
 * Products of INT16 take twice as long as those of bytes, so that half of the time is left, and the
 * additions on both sides are few where there are channels enough. */
#ifndef NK_WINOGRAD_AVX512_H
#define NK_WINOGRAD_AVX512_H

#include "broad_avx512.h"

#if NK_HAS_X86

#define NK_WINOGRAD_INPUTS 128 /* more would take more stack: nk_winograd_tiles */
#define NK_WINOGRAD_SIDE 4 /* of a tile of outputs */
#define NK_WINOGRAD_SPAN 6 /* of its inputs, and of products */
#define NK_WINOGRAD_TILES 4 /* at a time: 24 accumulators, which leaves 6 registers for weights */
#define NK_WINOGRAD_CHUNK 16 /* channels of a register of INT16 */
/* Transformed weights that are kept for one slice of a call: 64 channels to 64. */
#define NK_WINOGRAD_MOST 294912
/* Inputs transformed by columns: half of a first-level cache, and what a single row of tiles may take. */
#define NK_WINOGRAD_GOAL 16384
#define NK_WINOGRAD_ROW 32768

/* Transformed weights of 16 outputs: [6 columns][inputs / 2][6 rows][16 outputs][2 inputs]. */
static inline size_t nk_winograd_weights_bytes(const nk_dense *d) {
    return (size_t)36 * 2 * 16 * d->inputs;
}

/* 1 when this takes less time than products of bytes, for `rows` rows: with 16 channels a tile takes
 * as long as 10 pixels do, with more it takes less. */
static inline int nk_winograd_pays(const nk_dense *d, uint32_t rows) {
    const nk_conv2d_params *p = d->p;
    const uint64_t tiles = (uint64_t)nk_blocks(rows, NK_WINOGRAD_SIDE) *
                           nk_blocks(d->out->width, NK_WINOGRAD_SIDE);
    return p->kernel_h == 3 && p->kernel_w == 3 && p->stride_h == 1 && p->stride_w == 1 &&
           p->dilation_h == 1 && p->dilation_w == 1 && d->inputs % NK_WINOGRAD_CHUNK == 0 &&
           d->inputs <= NK_WINOGRAD_INPUTS && tiles > 1 &&
           tiles * 10 <= (uint64_t)rows * d->out->width;
}

/* Output channels at a time, a multiple of 16 that fits; 0: none. */
static inline uint32_t nk_winograd_slice(const nk_dense *d, uint32_t outputs) {
    const uint32_t fit = (uint32_t)(NK_WINOGRAD_MOST / nk_winograd_weights_bytes(d)) * 16;
    return nk_least(fit, outputs / 16 * 16);
}

static inline __attribute__((always_inline)) __m512i nk_twice(__m512i x) {
    return _mm512_add_epi16(x, x);
}

/* 24 G of three weights, the last row 12 G. */
static inline __attribute__((always_inline)) void nk_winograd_weights1(const __m512i w[3],
                                                                       __m512i to[6]) {
    const __m512i outer = _mm512_add_epi16(w[0], w[2]), even = _mm512_slli_epi16(outer, 2),
                  odd = _mm512_slli_epi16(w[1], 2);
    const __m512i four = _mm512_add_epi16(w[0], _mm512_slli_epi16(w[2], 2)), two = nk_twice(w[1]);
    to[0] = _mm512_mullo_epi16(w[0], _mm512_set1_epi16(6));
    to[1] = _mm512_sub_epi16(_mm512_setzero_si512(), _mm512_add_epi16(even, odd));
    to[2] = _mm512_sub_epi16(odd, even);
    to[3] = _mm512_add_epi16(four, two);
    to[4] = _mm512_sub_epi16(four, two);
    to[5] = _mm512_mullo_epi16(w[2], _mm512_set1_epi16(12));
}

/* The weights of 16 outputs, of two groups from `from` on. */
static inline void nk_winograd_weights(const nk_dense *d, const int8_t *from, int16_t *to) {
    const __m512i first_pairs =
        _mm512_castsi256_si512(_mm256_setr_epi16(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48,
                                                 52, 56, 60)); /* of each output, in two groups */
    const uint32_t pairs = d->inputs / 2;
    const size_t tap = (size_t)d->depth * NK_PACK;
    for (uint32_t k = 0; k < pairs; ++k, to += 6 * 32) {
        const int8_t *at = from + (size_t)(k / 4) * NK_PACK * NK_PACK;
        const __m512i pair = _mm512_add_epi16(first_pairs, _mm512_set1_epi16((int16_t)(k % 4)));
        __m512i rows[3][6]; /* by columns of the window */
        for (uint32_t x = 0; x < 3; ++x) {
            __m512i column[3];
            for (uint32_t y = 0; y < 3; ++y) {
                const int8_t *block = at + (3 * y + x) * tap;
                const __m512i bytes = _mm512_permutex2var_epi16(
                    _mm512_loadu_si512(block), pair, _mm512_loadu_si512(block + d->group_bytes));
                column[y] = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes));
            }
            nk_winograd_weights1(column, rows[x]);
        }
        for (uint32_t i = 0; i < 6; ++i) {
            const __m512i row[3] = {rows[0][i], rows[1][i], rows[2][i]};
            __m512i made[6];
            nk_winograd_weights1(row, made);
            for (uint32_t j = 0; j < 6; ++j)
                _mm512_storeu_si512(to + ((size_t)j * pairs * 6 + i) * 32, made[j]);
        }
    }
}

static inline __attribute__((always_inline)) __m256i nk_twice8(__m256i x) {
    return _mm256_add_epi16(x, x);
}

/* B' of six inputs, each 16 channels. */
static inline __attribute__((always_inline)) void nk_winograd_inputs1(const __m256i x[6],
                                                                      __m256i to[6]) {
    const __m256i outer = _mm256_sub_epi16(x[4], x[2]),
                  inner = nk_twice8(_mm256_sub_epi16(x[3], x[1]));
    const __m256i t = _mm256_sub_epi16(x[4], _mm256_slli_epi16(x[2], 2)),
                  u = _mm256_sub_epi16(x[3], _mm256_slli_epi16(x[1], 2));
    to[0] = _mm256_add_epi16(_mm256_slli_epi16(_mm256_sub_epi16(x[0], x[2]), 2), outer);
    to[1] = _mm256_add_epi16(t, u);
    to[2] = _mm256_sub_epi16(t, u);
    to[3] = _mm256_add_epi16(outer, inner);
    to[4] = _mm256_sub_epi16(outer, inner);
    to[5] = _mm256_sub_epi16(_mm256_sub_epi16(x[5], x[3]), nk_twice8(inner));
}

/* A row of tiles: six rows of the image, and the columns under its windows. */
typedef struct {
    const uint8_t *at[6]; /* the first column inside the image */
    size_t step[6];       /* from one chunk to the next; 0 for an absent row, which stands still */
    nk_columns columns;
} nk_winograd_strip;

/* B' of `count` bytes of six rows, to rows of `row` elements. */
static inline __attribute__((always_inline)) void nk_winograd_run(const nk_winograd_strip *s,
                                                                  size_t skip, size_t count,
                                                                  int16_t *to, size_t row,
                                                                  const int is_signed) {
    const uint8_t *at[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) at[i] = s->at[i] + (s->step[i] ? skip : 0);
    for (const int16_t *end = to + count; to != end; to += NK_WINOGRAD_CHUNK) {
        __m256i column[6], made[6];
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) {
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at[i]);
            column[i] = is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
            at[i] += s->step[i];
        }
        nk_winograd_inputs1(column, made);
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i)
            _mm256_storeu_si256((__m256i *)(void *)(to + i * row), made[i]);
    }
}

/* B' of a strip's columns, to [6 rows][columns][channels]. Columns outside the image are absent in
 * all six rows, for which B' is -6 times the value in its second row and 0 in the others. */
static inline __attribute__((always_inline)) void nk_winograd_down(const nk_dense *d,
                                                                   const nk_winograd_strip *s,
                                                                   int16_t *to,
                                                                   const int is_signed) {
    const nk_columns *c = &s->columns;
    const size_t depth = d->inputs, row = (c->before + c->inside + c->after) * depth;
    const __m256i outside = _mm256_set1_epi16((int16_t)(-6 * d->p->input_zero));
    for (uint32_t i = 0; i < 6; ++i)
        for (size_t x = 0; x < (c->before + c->after) * depth; x += NK_WINOGRAD_CHUNK) {
            const size_t at = x < c->before * depth ? x : x + c->inside * depth;
            _mm256_storeu_si256((__m256i *)(void *)(to + i * row + at),
                                i == 1 ? outside : _mm256_setzero_si256());
        }
    to += c->before * depth;
    if (d->in->pixel == depth) {
        nk_winograd_run(s, 0, c->inside * depth, to, row, is_signed);
        return;
    }
    for (uint32_t x = 0; x < c->inside; ++x, to += depth)
        nk_winograd_run(s, (size_t)x * d->in->pixel, depth, to, row, is_signed);
}

/* B of one tile, six columns from `from` on in rows `row` apart, to [6 columns][chunks][6 rows]
 * [T tiles][16 channels]. */
static inline __attribute__((always_inline)) void nk_winograd_across(uint32_t inputs,
                                                                     const int16_t *from,
                                                                     size_t row, int16_t *to,
                                                                     const uint32_t T) {
    const uint32_t chunks = inputs / NK_WINOGRAD_CHUNK;
    for (uint32_t k = 0; k < chunks; ++k, from += NK_WINOGRAD_CHUNK) {
        for (uint32_t i = 0; i < 6; ++i, to += (size_t)T * NK_WINOGRAD_CHUNK) {
            __m256i x[6], made[6];
#pragma GCC unroll 6
            for (uint32_t j = 0; j < 6; ++j)
                x[j] = _mm256_loadu_si256(
                    (const __m256i *)(const void *)(from + i * row + (size_t)j * inputs));
            nk_winograd_inputs1(x, made);
#pragma GCC unroll 6
            for (uint32_t j = 0; j < 6; ++j)
                _mm256_storeu_si256(
                    (__m256i *)(void *)(to + (size_t)j * chunks * 6 * T * NK_WINOGRAD_CHUNK),
                    made[j]);
        }
    }
}

/* Two INT16 that are broadcast together. */
typedef int32_t __attribute__((may_alias)) nk_two;

/* sum += products of two INT16 at `two` with 16 pairs of weights. */
static inline __attribute__((always_inline)) void nk_dot2(__m512i *sum, __m512i weights,
                                                          const int16_t *two) {
    __asm__("vpdpwssd %2%{1to16%}, %1, %0"
            : "+v"(*sum)
            : "v"(weights), "m"(*(const nk_two *)(const void *)two));
}

/* A' of six sums, where the last is half of what it should be, plus `start`. */
static inline __attribute__((always_inline)) void nk_winograd_outputs1(const __m512i x[6],
                                                                       __m512i start,
                                                                       __m512i to[4]) {
    const __m512i from = _mm512_add_epi32(x[1], start), a = _mm512_add_epi32(from, x[2]),
                  b = _mm512_sub_epi32(from, x[2]),
                  c = _mm512_add_epi32(x[3], x[4]), d = _mm512_sub_epi32(x[3], x[4]);
    const __m512i last = _mm512_add_epi32(x[5], _mm512_slli_epi32(d, 2));
    to[0] = _mm512_add_epi32(_mm512_add_epi32(x[0], a), c);
    to[1] = _mm512_add_epi32(b, _mm512_add_epi32(d, d));
    to[2] = _mm512_add_epi32(a, _mm512_slli_epi32(c, 2));
    to[3] = _mm512_add_epi32(b, _mm512_add_epi32(last, last));
}

/* 16 outputs: their weights, 576 times the bias, and the stage for 576 or 64 times the accumulator. */
typedef struct {
    __m512i start;
    nk_lanes16 lanes;
    int far; /* 64 times, because 576 may not fit */
    int16_t weights[] __attribute__((aligned(64)));
} nk_winograd;

static inline size_t nk_winograd_bytes(const nk_dense *d) {
    return sizeof(nk_winograd) + nk_winograd_weights_bytes(d);
}

static inline __attribute__((always_inline)) __m512i nk_winograd_ninth(__m512i x) {
    return _mm512_mullo_epi32(x, _mm512_set1_epi32(0x38E38E39)); /* 9 * this is 1 modulo 2^32 */
}

/* Sums of the weights' magnitudes, of 8 outputs. */
static inline __m256i nk_winograd_magnitudes(const nk_dense *d, const int8_t *weights) {
    __m512i sum = _mm512_setzero_si512();
    for (size_t at = 0; at < d->group_bytes; at += NK_PACK * NK_PACK)
        nk_dot4(&sum, _mm512_abs_epi8(_mm512_loadu_si512(weights + at)), _mm512_set1_epi8(1));
    return _mm512_cvtepi64_epi32(_mm512_add_epi32(sum, _mm512_srli_epi64(sum, 32)));
}

/* 1 when `times` any accumulator of the 16 outputs from `channel` on fits INT32. */
static inline int nk_winograd_fits(const nk_dense *d, uint32_t channel, int32_t times) {
    const int8_t *weights = d->weights + channel / NK_PACK * d->group_bytes;
    const __m512i sum =
        _mm512_inserti64x4(_mm512_castsi256_si512(nk_winograd_magnitudes(d, weights)),
                           nk_winograd_magnitudes(d, weights + d->group_bytes), 1);
    const __m512i bias = _mm512_loadu_si512(d->stage->table + 4 * (size_t)(d->first_out + channel));
    const __m512i most = _mm512_set1_epi32(INT32_MAX / times),
                  size = _mm512_abs_epi32(bias); /* unsigned: INT32_MIN is large */
    const __m512i products = _mm512_mullo_epi32(sum, _mm512_set1_epi32(d->flip ? 128 : 255));
    return !_mm512_cmpgt_epu32_mask(size, most) &&
           !_mm512_cmpgt_epu32_mask(_mm512_add_epi32(size, products), most);
}

/* The float form's factor divided by `times`, rounded once: both halves go through doubles. */
static inline __m512 nk_winograd_factor(const nk_lanes16 *k, int32_t times) {
    const __m512d by = _mm512_set1_pd(times);
    const __m256 low = _mm512_cvtpd_ps(
        _mm512_div_pd(_mm512_cvtepi32_pd(_mm512_castsi512_si256(k->multiplier)), by));
    const __m256 high = _mm512_cvtpd_ps(
        _mm512_div_pd(_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(k->multiplier, 1)), by));
    const __m512 both = _mm512_castpd_ps(_mm512_insertf64x4(
        _mm512_castps_pd(_mm512_castps256_ps512(low)), _mm256_castps_pd(high), 1));
    const __m512 power = _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(127 - 15), k->shift), 23));
    return _mm512_mul_ps(both, power);
}

/* The 16 outputs from `channel` on, whose products add up to `most` at most; 0 when they need another
 * way. */
static inline int nk_winograd_fill(const nk_dense *d, uint32_t channel, int32_t most,
                                   nk_winograd *to) {
    const uint32_t first = d->first_out + channel;
    to->lanes = nk_lanes16_of(d->stage, first, 16, 0, most);
    to->far = !nk_winograd_fits(d, channel, 576);
    if (to->lanes.form != NK_FLOAT || (to->far && !nk_winograd_fits(d, channel, 64))) return 0;
    to->lanes.factor = nk_winograd_factor(&to->lanes, to->far ? 64 : 576);
    to->start = _mm512_mullo_epi32(_mm512_loadu_si512(d->stage->table + 4 * (size_t)first),
                                   _mm512_set1_epi32(576));
    nk_winograd_weights(d, d->weights + channel / NK_PACK * d->group_bytes, to->weights);
    return 1;
}

/* A block of outputs in the image, in tiles. */
typedef struct {
    const int16_t *inputs; /* B' of them: [rows of tiles][6 rows][columns][channels] */
    size_t row;            /* elements of a row */
    uint32_t image, across; /* tiles in a row */
    int32_t y, x, rows, columns;
} nk_winograd_block;

/* Tiles whose sums wait for the rest of A' and the stage. */
typedef struct {
    __m512i sums[NK_WINOGRAD_TILES][6][4];
    const nk_winograd *w;
    const nk_winograd_block *block;
    uint32_t first, tiles, channel;
    uint32_t done; /* tiles */
} nk_winograd_waiting;

/* The tile at hand in the block: where it is, and how much of it is asked for. */
typedef struct {
    int32_t y, x, rows, columns;
} nk_winograd_place;

static inline nk_winograd_place nk_winograd_place_of(const nk_winograd_waiting *q) {
    const nk_winograd_block *b = q->block;
    const uint32_t tile = q->first + q->done;
    const int32_t y = (int32_t)(tile / b->across * NK_WINOGRAD_SIDE),
                  x = (int32_t)(tile % b->across * NK_WINOGRAD_SIDE);
    return (nk_winograd_place){b->y + y, b->x + x, nk_min(NK_WINOGRAD_SIDE, b->rows - y),
                               nk_min(NK_WINOGRAD_SIDE, b->columns - x)};
}

/* 1 when there is a tile at hand, all of it asked for. */
static inline int nk_winograd_whole(const nk_winograd_waiting *q) {
    if (q->done == q->tiles) return 0;
    const nk_winograd_place at = nk_winograd_place_of(q);
    return at.rows == NK_WINOGRAD_SIDE && at.columns == NK_WINOGRAD_SIDE;
}

/* A' of a row of the tile's sums: 576 times four pixels, or 64 times. */
static inline __attribute__((always_inline)) void nk_winograd_turn(const nk_winograd_waiting *q,
                                                                   uint32_t row, __m512i acc[4],
                                                                   const int far) {
    const __m512i(*sums)[4] = q->sums[q->done];
    const __m512i x[6] = {sums[0][row], sums[1][row], sums[2][row],
                          sums[3][row], sums[4][row], sums[5][row]};
    nk_winograd_outputs1(x, q->w->start, acc);
#pragma GCC unroll 4
    for (int j = 0; far && j < 4; ++j) acc[j] = nk_winograd_ninth(acc[j]);
}

/* Upper words of four pixels to bytes, clamped to INT8; natural lanes. */
static inline __attribute__((always_inline)) __m512i nk_winograd_bytes4(const nk_clamps *c,
                                                                        const __m512i v[4]) {
    const __m512i pixels =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i front = _mm512_packs_epi32(_mm512_srai_epi32(v[0], 16), _mm512_srai_epi32(v[1], 16)),
                  back = _mm512_packs_epi32(_mm512_srai_epi32(v[2], 16), _mm512_srai_epi32(v[3], 16));
    return _mm512_permutexvar_epi32(pixels, _mm512_packs_epi16(_mm512_adds_epi16(front, c->zero),
                                                               _mm512_adds_epi16(back, c->zero)));
}

/* Four pixels in the float form; `least` collects what nk_winograd_doubtful looks at. */
static inline __attribute__((always_inline)) __m512i nk_winograd_stage(const nk_winograd_waiting *q,
                                                                       const nk_clamps *clamps,
                                                                       const __m512i acc[4],
                                                                       __m512i *least,
                                                                       const int relu) {
    __m512i v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
        v[j] = nk_rescale16_float(&q->w->lanes, acc[j], relu);
        *least = _mm512_min_epu16(*least, v[j]);
    }
    return nk_winograd_bytes4(clamps, v);
}

static inline uint8_t *nk_winograd_output(const nk_dense *d, const nk_winograd_waiting *q,
                                          const nk_winograd_place *at, uint32_t row) {
    return nk_row(d->out, q->block->image, at->y + (int32_t)row) + (size_t)at->x * d->out->pixel +
           d->first_out + q->channel;
}

static inline __attribute__((always_inline)) void nk_winograd_put(uint8_t *to, size_t pixel,
                                                                  uint32_t count, __m512i bytes) {
    if (pixel == 16 && count == 4) _mm512_storeu_si512(to, bytes);
    else nk_store4(to, pixel, count, bytes);
}

/* The tile at hand in the integer form. */
static __attribute__((noinline)) void nk_winograd_again(const nk_dense *d, const nk_clamps *clamps,
                                                        const nk_winograd_waiting *q) {
    const nk_winograd_place at = nk_winograd_place_of(q);
    for (uint32_t row = 0; row < (uint32_t)at.rows; ++row) {
        __m512i v[4];
        nk_winograd_turn(q, row, v, 1);
        for (int j = 0; j < 4; ++j) v[j] = nk_rescale16(&q->w->lanes, _mm512_srai_epi32(v[j], 6));
        const __m512i bytes =
            nk_bytes4(clamps, nk_turn_words(v[0], v[1]), nk_turn_words(v[2], v[3]), 0, 0);
        nk_winograd_put(nk_winograd_output(d, q, &at, row), d->out->pixel, (uint32_t)at.columns,
                        bytes);
    }
}

/* The tile at hand is done, unless the float form may be wrong. */
static inline __attribute__((always_inline)) void nk_winograd_end(const nk_dense *d,
                                                                  const nk_clamps *clamps,
                                                                  nk_winograd_waiting *q,
                                                                  __m512i least) {
    const __m512i doubt = _mm512_set1_epi16(NK_DOUBT);
    if (__builtin_expect(_mm512_mask_cmplt_epu16_mask(0x55555555, least, doubt) != 0, 0))
        nk_winograd_again(d, clamps, q);
    q->done++;
}

/* The tile at hand, on its own. */
static __attribute__((noinline)) void nk_winograd_finish(const nk_dense *d, const nk_clamps *clamps,
                                                         nk_winograd_waiting *q) {
    const nk_winograd_place at = nk_winograd_place_of(q);
    __m512i least = _mm512_set1_epi32(-1);
    for (uint32_t row = 0; row < (uint32_t)at.rows; ++row) {
        __m512i acc[4];
        if (q->w->far) nk_winograd_turn(q, row, acc, 1);
        else nk_winograd_turn(q, row, acc, 0);
        nk_winograd_put(nk_winograd_output(d, q, &at, row), d->out->pixel, (uint32_t)at.columns,
                        nk_winograd_stage(q, clamps, acc, &least, 0));
    }
    nk_winograd_end(d, clamps, q, least);
}

/* Products of two inputs of T tiles. */
static inline __attribute__((always_inline)) void nk_winograd_step(const int16_t *inputs,
                                                                   const int16_t *weights,
                                                                   __m512i sum[6][NK_WINOGRAD_TILES],
                                                                   const int T) {
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
        const __m512i w = _mm512_loadu_si512(weights + 32 * i);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) nk_dot2(&sum[i][t], w, inputs + (i * T + t) * 16);
    }
}

/* A chunk of inputs, and a whole tile that waits. Multiply-adds and the rest run in different parts
 * of the processor, whose window of some 50 instructions overlaps them only when they take turns. */
static inline __attribute__((always_inline)) void nk_winograd_both(
    const nk_dense *d, const nk_clamps *clamps, const int16_t *inputs, const int16_t *weights,
    __m512i sum[6][NK_WINOGRAD_TILES], nk_winograd_waiting *q, const int T, const int relu,
    const int far) {
    const nk_winograd_place at = nk_winograd_place_of(q);
    __m512i least = _mm512_set1_epi32(-1);
#pragma GCC unroll 4
    for (uint32_t row = 0; row < NK_WINOGRAD_SIDE; ++row) {
        __m512i acc[4];
        nk_winograd_step(inputs + 4 * row, weights + 12 * 32 * row, sum, T);
        nk_winograd_turn(q, row, acc, far);
        nk_winograd_step(inputs + 4 * row + 2, weights + 12 * 32 * row + 6 * 32, sum, T);
        nk_winograd_put(nk_winograd_output(d, q, &at, row), d->out->pixel, NK_WINOGRAD_SIDE,
                        nk_winograd_stage(q, clamps, acc, &least, relu));
    }
    nk_winograd_end(d, clamps, q, least);
}

/* Products of T tiles and 16 outputs: sums over all inputs, and A' of their columns. `relu` and `far`
 * are those of what waits. */
static inline __attribute__((always_inline)) void nk_winograd_sums(
    const nk_dense *d, const nk_clamps *clamps, const int16_t *inputs, nk_winograd_waiting *to,
    nk_winograd_waiting *q, const int T, const int relu, const int far) {
    const uint32_t chunks = d->inputs / NK_WINOGRAD_CHUNK;
    const int16_t *weights = to->w->weights;
    for (uint32_t j = 0; j < 6; ++j) {
        __m512i sum[6][NK_WINOGRAD_TILES];
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i)
#pragma GCC unroll 4
            for (int t = 0; t < T; ++t) sum[i][t] = _mm512_setzero_si512();
        for (uint32_t c = 0; c < chunks; ++c, inputs += 6 * T * 16, weights += 8 * 6 * 32) {
            if (T == NK_WINOGRAD_TILES && nk_winograd_whole(q)) {
                nk_winograd_both(d, clamps, inputs, weights, sum, q, T, relu, far);
                continue;
            }
            for (uint32_t k = 0; k < NK_WINOGRAD_CHUNK / 2; ++k)
                nk_winograd_step(inputs + 2 * k, weights + k * 6 * 32, sum, T);
        }
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
            const __m512i column[6] = {sum[0][t], sum[1][t], sum[2][t],
                                       sum[3][t], sum[4][t], sum[5][t]};
            nk_winograd_outputs1(column, _mm512_setzero_si512(), to->sums[t][j]);
        }
    }
    while (q->done < q->tiles) nk_winograd_finish(d, clamps, q);
}

typedef void (*nk_winograd_sums_function)(const nk_dense *d, const nk_clamps *clamps,
                                          const int16_t *inputs, nk_winograd_waiting *to,
                                          nk_winograd_waiting *q);

// clang-format off
#define NK_WINOGRAD_ACROSS(T)                                                                                     \
    static void nk_winograd_across_##T(uint32_t inputs, const int16_t *from, size_t row, int16_t *to) {           \
        nk_winograd_across(inputs, from, row, to, T);                                                             \
    }
NK_WINOGRAD_ACROSS(1) NK_WINOGRAD_ACROSS(2) NK_WINOGRAD_ACROSS(3) NK_WINOGRAD_ACROSS(4)
#define NK_WINOGRAD_SUMS(T, relu, far)                                                                            \
    static void nk_winograd_sums_##T##_##relu##_##far(const nk_dense *d, const nk_clamps *clamps,                 \
                                                      const int16_t *inputs, nk_winograd_waiting *to,             \
                                                      nk_winograd_waiting *q) {                                   \
        nk_winograd_sums(d, clamps, inputs, to, q, T, relu, far);                                                 \
    }
NK_WINOGRAD_SUMS(1, 0, 0) NK_WINOGRAD_SUMS(2, 0, 0) NK_WINOGRAD_SUMS(3, 0, 0)
NK_WINOGRAD_SUMS(4, 0, 0) NK_WINOGRAD_SUMS(4, 1, 0) NK_WINOGRAD_SUMS(4, 0, 1)
// clang-format on

/* By tiles at a time. */
static void (*const nk_winograd_across_of[])(uint32_t inputs, const int16_t *from, size_t row,
                                             int16_t *to) = {
    NULL, nk_winograd_across_1, nk_winograd_across_2, nk_winograd_across_3, nk_winograd_across_4};

/* By tiles at a time, and by what waits: only whole fours of tiles finish it on the way. */
static inline nk_winograd_sums_function nk_winograd_sums_of(uint32_t tiles,
                                                            const nk_winograd_waiting *q) {
    static const nk_winograd_sums_function few[] = {NULL, nk_winograd_sums_1_0_0,
                                                    nk_winograd_sums_2_0_0, nk_winograd_sums_3_0_0};
    return tiles < NK_WINOGRAD_TILES ? few[tiles]
           : q->done == q->tiles     ? nk_winograd_sums_4_0_0
           : q->w->far               ? nk_winograd_sums_4_0_1
           : q->w->lanes.relu        ? nk_winograd_sums_4_1_0
                                     : nk_winograd_sums_4_0_0;
}

static void nk_winograd_tiles(const nk_dense *d, const uint8_t *made, const nk_clamps *clamps,
                              const nk_winograd_block *b) {
    const uint32_t tiles = nk_blocks((uint32_t)b->rows, NK_WINOGRAD_SIDE) * b->across;
    int16_t inputs[36 * NK_WINOGRAD_TILES * NK_WINOGRAD_INPUTS] __attribute__((aligned(64)));
    nk_winograd_waiting waiting[2]; /* one is filled, the other finished */
    uint32_t turn = 0;
    waiting[1].tiles = waiting[1].done = 0;
    for (uint32_t first = 0, count; first < tiles; first += count) {
        count = nk_least(NK_WINOGRAD_TILES, tiles - first);
        for (uint32_t t = 0; t < count; ++t) {
            const size_t y = (size_t)(first + t) / b->across,
                         x = (size_t)(first + t) % b->across * NK_WINOGRAD_SIDE;
            nk_winograd_across_of[count](d->inputs, b->inputs + y * 6 * b->row + x * d->inputs,
                                         b->row, inputs + t * NK_WINOGRAD_CHUNK);
        }
        for (uint32_t c = 0; c < d->outputs; c += 16, turn ^= 1) {
            nk_winograd_waiting *q = &waiting[turn];
            q->w = (const nk_winograd *)(const void *)(made + c / 16 * nk_winograd_bytes(d));
            q->block = b, q->first = first, q->tiles = count, q->channel = c, q->done = 0;
            nk_winograd_sums_of(count, &waiting[turn ^ 1])(d, clamps, inputs, q,
                                                           &waiting[turn ^ 1]);
        }
    }
    nk_winograd_waiting *last = &waiting[turn ^ 1];
    while (last->done < last->tiles) nk_winograd_finish(d, clamps, last);
}

/* The row of tiles whose first input row is y; rows from `end` on are not asked for, and may not be
 * there. */
static inline nk_winograd_strip nk_winograd_strip_of(const nk_dense *d, uint32_t image, int32_t y,
                                                     int32_t end, const nk_columns *columns,
                                                     const uint8_t *absent) {
    nk_winograd_strip s = {.columns = *columns};
    for (int32_t i = 0; i < 6; ++i) {
        const int inside = y + i >= 0 && y + i < nk_min(end, (int32_t)d->in->height);
        s.at[i] = absent, s.step[i] = 0;
        if (!inside || !columns->inside) continue;
        s.at[i] = nk_row(d->in, image, y + i) + (size_t)columns->first * d->in->pixel + d->first_in;
        s.step[i] = NK_WINOGRAD_CHUNK;
    }
    return s;
}

/* Rows [row0, row1) of one image; `made` has an nk_winograd for every 16 outputs. */
static void nk_winograd_rows(const nk_dense *d, const uint8_t *made, const nk_clamps *clamps,
                             uint32_t image, int32_t row0, int32_t row1) {
    enum { SIDE = NK_WINOGRAD_SIDE, HALO = NK_WINOGRAD_SPAN - NK_WINOGRAD_SIDE };
    int16_t inputs[NK_WINOGRAD_ROW / 2] __attribute__((aligned(64)));
    uint8_t absent[NK_WINOGRAD_CHUNK];
    const int32_t width = (int32_t)d->out->width, column = 6 * 2 * (int32_t)d->inputs;
    const int32_t most = (NK_WINOGRAD_ROW / column - HALO) / SIDE * SIDE,
                  columns = nk_min(most, (int32_t)nk_blocks((uint32_t)width, SIDE) * SIDE);
    const int32_t down = NK_WINOGRAD_GOAL / (column * (columns + HALO)),
                  rows = SIDE * (down > 0 ? down : 1);
    memset(absent, (uint8_t)d->p->input_zero, sizeof absent);
    for (int32_t y = row0; y < row1; y += rows) {
        for (int32_t x = 0; x < width; x += columns) {
            if (nk_stopped(d->call)) return;
            nk_winograd_block b = {.inputs = inputs, .image = image, .y = y, .x = x};
            b.rows = nk_min(rows, row1 - y), b.columns = nk_min(columns, width - x);
            b.across = nk_blocks((uint32_t)b.columns, SIDE);
            const uint32_t filled = b.across * SIDE + HALO;
            b.row = (size_t)filled * d->inputs;
            const nk_columns c = nk_columns_of(d, x - d->p->pad_left, 1, filled);
            for (int32_t r = 0; r < b.rows; r += SIDE) {
                const nk_winograd_strip strip =
                    nk_winograd_strip_of(d, image, y + r - d->p->pad_top,
                                         y + b.rows + HALO - d->p->pad_top, &c, absent);
                int16_t *to = inputs + (size_t)(r / SIDE) * 6 * b.row;
                if (d->flip) nk_winograd_down(d, &strip, to, 1);
                else nk_winograd_down(d, &strip, to, 0);
            }
            nk_winograd_tiles(d, made, clamps, &b);
        }
    }
}

#endif
#endif
