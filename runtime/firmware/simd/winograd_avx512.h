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
#define NK_WINOGRAD_SIDE 4     /* of a tile of outputs */
#define NK_WINOGRAD_SPAN 6     /* of its inputs, and of products */
#define NK_WINOGRAD_TILES 4  /* at a time: 24 accumulators, which leaves 6 registers for weights */
#define NK_WINOGRAD_CHUNK 16 /* channels of a register of INT16 */
/* Transformed weights that are kept for one slice of a call: 64 channels to 64. */
#define NK_WINOGRAD_MOST 294912
/* Inputs of a row of tiles, transformed by columns; wider images are cut. */
#define NK_WINOGRAD_ROW 32768

/* Transformed weights of 16 outputs: [6 columns][inputs / 2][6 rows][16 outputs][2 inputs]. */
static inline size_t nk_winograd_weights_bytes(const nk_dense *d) {
    return (size_t)36 * 2 * 16 * d->inputs;
}

/* 1 when this takes less time than products of bytes, for `rows` rows: with 16 channels a tile
 * takes as long as 10 pixels do, with more it takes less. */
static inline int nk_winograd_pays(const nk_dense *d, uint32_t rows) {
    const nk_conv2d_params *p = d->p;
    const uint64_t tiles =
        (uint64_t)nk_blocks(rows, NK_WINOGRAD_SIDE) * nk_blocks(d->out->width, NK_WINOGRAD_SIDE);
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

/* B' of six inputs, as INT16 vectors of any length. */
#define NK_WINOGRAD_INPUTS1(x, to) \
    do { \
        const __typeof__((x)[0]) outer = (x)[4] - (x)[2], inner = ((x)[3] - (x)[1]) * 2, \
                                 t = (x)[4] - (x)[2] * 4, u = (x)[3] - (x)[1] * 4; \
        (to)[0] = ((x)[0] - (x)[2]) * 4 + outer; \
        (to)[1] = t + u; \
        (to)[2] = t - u; \
        (to)[3] = outer + inner; \
        (to)[4] = outer - inner; \
        (to)[5] = (x)[5] - (x)[3] - inner * 2; \
    } while (0)

typedef int16_t nk_words16 __attribute__((vector_size(32)));
typedef int16_t nk_words32 __attribute__((vector_size(64)));

/* A row of tiles: six rows of the image, and the columns under its windows. */
typedef struct {
    const uint8_t *at[6]; /* the first column inside the image */
    size_t step[6];       /* to the next column; 0 for an absent row, which stands still */
    int all;              /* no row is absent */
    nk_columns columns;
} nk_winograd_strip;

/* B' of 16 channels from `channel` on, of the columns inside the image. Rows lie in pairs, so that
 * a register holds two: [3][columns][2][16]. */
static inline __attribute__((always_inline)) void nk_winograd_chunk(const nk_winograd_strip *s,
                                                                    uint32_t channel, int16_t *to,
                                                                    size_t columns,
                                                                    const int is_signed,
                                                                    const int all) {
    for (size_t x = 0; x < s->columns.inside; ++x, to += 32) {
        nk_words16 column[6], made[6];
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) {
            const uint8_t *at = s->at[i] + x * s->step[all ? 0 : i] + channel;
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
            column[i] =
                (nk_words16)(is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes));
        }
        NK_WINOGRAD_INPUTS1(column, made);
#pragma GCC unroll 6
        for (uint32_t i = 0; i < 6; ++i)
            memcpy(to + (size_t)(i / 2) * columns * 32 + i % 2 * 16, &made[i], sizeof made[i]);
    }
}

/* The same of columns [x, end) outside the image: they are absent in all six rows, for which B' is
 * -6 times the value in its second row and 0 in the others. */
static inline void nk_winograd_absent(const nk_dense *d, int16_t *to, size_t columns, size_t x,
                                      size_t end) {
    const nk_words16 none = {0}, value = none + (int16_t)(-6 * d->p->input_zero);
    for (; x < end; ++x)
        for (uint32_t i = 0; i < 6; ++i)
            memcpy(to + ((size_t)(i / 2) * columns + x) * 32 + i % 2 * 16, i == 1 ? &value : &none,
                   sizeof none);
}

/* B' of a strip, chunk by chunk. */
static inline __attribute__((always_inline)) void nk_winograd_down(const nk_dense *d,
                                                                   const nk_winograd_strip *s,
                                                                   int16_t *to,
                                                                   const int is_signed) {
    const nk_columns *c = &s->columns;
    const size_t right = c->before + c->inside, columns = right + c->after;
    for (uint32_t k = 0; k < d->inputs; k += NK_WINOGRAD_CHUNK, to += 3 * columns * 32) {
        nk_winograd_absent(d, to, columns, 0, c->before);
        nk_winograd_absent(d, to, columns, right, columns);
        if (s->all) nk_winograd_chunk(s, k, to + (size_t)c->before * 32, columns, is_signed, 1);
        else nk_winograd_chunk(s, k, to + (size_t)c->before * 32, columns, is_signed, 0);
    }
}

/* Elements of a chunk of inputs of four tiles in one column: [tiles][6 rows][16 channels]. */
#define NK_WINOGRAD_FOUR ((size_t)NK_WINOGRAD_TILES * 6 * NK_WINOGRAD_CHUNK)

/* B of one tile, whose first column is at `from`, to [6 columns][chunks] of such. */
static void nk_winograd_across(uint32_t chunks, const int16_t *from, size_t columns, int16_t *to) {
    const size_t apart = chunks * NK_WINOGRAD_FOUR;
    for (uint32_t k = 0; k < chunks; ++k, to += NK_WINOGRAD_FOUR - 96) {
        for (uint32_t pair = 0; pair < 3; ++pair, from += columns * 32, to += 32) {
            nk_words32 in[6], made[6];
#pragma GCC unroll 6
            for (uint32_t j = 0; j < 6; ++j) memcpy(&in[j], from + (size_t)j * 32, sizeof in[j]);
            NK_WINOGRAD_INPUTS1(in, made);
#pragma GCC unroll 6
            for (uint32_t j = 0; j < 6; ++j) memcpy(to + j * apart, &made[j], sizeof made[j]);
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
                  b = _mm512_sub_epi32(from, x[2]), c = _mm512_add_epi32(x[3], x[4]),
                  d = _mm512_sub_epi32(x[3], x[4]);
    const __m512i last = _mm512_add_epi32(x[5], _mm512_slli_epi32(d, 2));
    to[0] = _mm512_add_epi32(_mm512_add_epi32(x[0], a), c);
    to[1] = _mm512_add_epi32(b, _mm512_add_epi32(d, d));
    to[2] = _mm512_add_epi32(a, _mm512_slli_epi32(c, 2));
    to[3] = _mm512_add_epi32(b, _mm512_add_epi32(last, last));
}

/* 16 outputs: their weights, 576 times the bias, and the stage for 576 or 64 times the accumulator.
 */
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

/* The 16 outputs from `channel` on, whose products add up to `most` at most; 0 when they need
 * another way. */
static inline int nk_winograd_fill(const nk_dense *d, const nk_clamps *clamps, uint32_t channel,
                                   int32_t most, nk_winograd *to) {
    const uint32_t first = d->first_out + channel;
    to->lanes = nk_lanes16_of(d->stage, clamps, first, 16, 0, most);
    to->far = !nk_winograd_fits(d, channel, 576);
    if (to->lanes.form != NK_FLOAT || (to->far && !nk_winograd_fits(d, channel, 64))) return 0;
    to->lanes.factor = nk_winograd_factor(&to->lanes, to->far ? 64 : 576);
    to->start = _mm512_mullo_epi32(_mm512_loadu_si512(d->stage->table + 4 * (size_t)first),
                                   _mm512_set1_epi32(576));
    nk_winograd_weights(d, d->weights + channel / NK_PACK * d->group_bytes, to->weights);
    return 1;
}

/* Where a tile is in the image, and how much of it is asked for. */
typedef struct {
    uint32_t image;
    int32_t y, x, rows, columns;
} nk_winograd_place;

/* Tiles whose sums wait for the rest of A' and the stage. */
typedef struct {
    __m512i sums[NK_WINOGRAD_TILES][6][4];
    nk_winograd_place places[NK_WINOGRAD_TILES];
    const nk_winograd *w;
    uint32_t tiles, channel;
    uint32_t done; /* tiles */
} nk_winograd_waiting;

/* 1 when there is a tile at hand, all of it asked for. */
static inline int nk_winograd_whole(const nk_winograd_waiting *q) {
    if (q->done == q->tiles) return 0;
    const nk_winograd_place *at = &q->places[q->done];
    return at->rows == NK_WINOGRAD_SIDE && at->columns == NK_WINOGRAD_SIDE;
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

/* Four pixels in the float form; `least` collects what nk_winograd_doubtful looks at. */
static inline __attribute__((always_inline)) __m512i nk_winograd_stage(const nk_winograd_waiting *q,
                                                                       const __m512i acc[4],
                                                                       __m512i *least,
                                                                       const int relu) {
    __m512i v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
        v[j] = nk_rescale16_float(&q->w->lanes, acc[j], relu);
        *least = _mm512_min_epu16(*least, v[j]);
    }
    return nk_upper_bytes(v, 0);
}

/* A row of the tile at hand. */
static inline uint8_t *nk_winograd_output(const nk_dense *d, const nk_winograd_waiting *q,
                                          uint32_t row) {
    const nk_winograd_place *at = &q->places[q->done];
    return nk_row(d->out, at->image, at->y + (int32_t)row) + (size_t)at->x * d->out->pixel +
           d->first_out + q->channel;
}

static inline __attribute__((always_inline)) void nk_winograd_put(uint8_t *to, size_t pixel,
                                                                  uint32_t count, __m512i bytes) {
    if (pixel == 16 && count == 4) _mm512_storeu_si512(to, bytes);
    else nk_store4(to, pixel, count, bytes);
}

static inline __attribute__((always_inline)) int nk_winograd_doubtful(__m512i least) {
    return _mm512_mask_cmplt_epu16_mask(0x55555555, least, _mm512_set1_epi16(NK_DOUBT)) != 0;
}

/* Rows of the tile at hand in the integer form, where the float form may be wrong. */
static __attribute__((noinline)) void nk_winograd_again(const nk_dense *d, const nk_clamps *clamps,
                                                        const nk_winograd_waiting *q) {
    const nk_winograd_place at = q->places[q->done];
    for (uint32_t row = 0; row < (uint32_t)at.rows; ++row) {
        __m512i v[4], least = _mm512_set1_epi32(-1);
        if (q->w->far) nk_winograd_turn(q, row, v, 1);
        else nk_winograd_turn(q, row, v, 0);
        (void)nk_winograd_stage(q, v, &least, 0);
        if (!nk_winograd_doubtful(least)) continue;
        nk_winograd_turn(q, row, v, 1);
        for (int j = 0; j < 4; ++j) v[j] = nk_rescale16(&q->w->lanes, _mm512_srai_epi32(v[j], 6));
        const __m512i bytes = nk_bytes4(clamps, nk_turn_words(clamps, v[0], v[1]),
                                        nk_turn_words(clamps, v[2], v[3]), 0, 0);
        nk_winograd_put(nk_winograd_output(d, q, row), d->out->pixel, (uint32_t)at.columns, bytes);
    }
}

/* The tile at hand is done, unless the float form may be wrong. */
static inline __attribute__((always_inline)) void nk_winograd_end(const nk_dense *d,
                                                                  const nk_clamps *clamps,
                                                                  nk_winograd_waiting *q,
                                                                  __m512i least) {
    if (__builtin_expect(nk_winograd_doubtful(least), 0)) nk_winograd_again(d, clamps, q);
    q->done++;
}

/* The tile at hand, on its own. */
static __attribute__((noinline)) void nk_winograd_finish(const nk_dense *d, const nk_clamps *clamps,
                                                         nk_winograd_waiting *q) {
    const nk_winograd_place at = q->places[q->done];
    __m512i least = _mm512_set1_epi32(-1);
    for (uint32_t row = 0; row < (uint32_t)at.rows; ++row) {
        __m512i acc[4];
        if (q->w->far) nk_winograd_turn(q, row, acc, 1);
        else nk_winograd_turn(q, row, acc, 0);
        nk_winograd_put(nk_winograd_output(d, q, row), d->out->pixel, (uint32_t)at.columns,
                        nk_winograd_stage(q, acc, &least, 0));
    }
    nk_winograd_end(d, clamps, q, least);
}

/* Products of two inputs of T tiles. */
static inline __attribute__((always_inline)) void nk_winograd_step(
    const int16_t *inputs, const int16_t *weights, __m512i sum[6][NK_WINOGRAD_TILES], const int T) {
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
        const __m512i w = _mm512_loadu_si512(weights + 32 * i);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) nk_dot2(&sum[i][t], w, inputs + (t * 6 + i) * 16);
    }
}

/* A chunk of inputs, and a whole tile that waits. Multiply-adds and the rest run in different parts
 * of the processor, whose window of some 50 instructions overlaps them only when they take turns.
 */
static inline __attribute__((always_inline)) void nk_winograd_both(
    const nk_dense *d, const nk_clamps *clamps, const int16_t *inputs, const int16_t *weights,
    __m512i sum[6][NK_WINOGRAD_TILES], nk_winograd_waiting *q, const int T, const int relu,
    const int far) {
    __m512i least = _mm512_set1_epi32(-1);
#pragma GCC unroll 4
    for (uint32_t row = 0; row < NK_WINOGRAD_SIDE; ++row) {
        __m512i acc[4];
        nk_winograd_step(inputs + 4 * row, weights + 12 * 32 * row, sum, T);
        nk_winograd_turn(q, row, acc, far);
        nk_winograd_step(inputs + 4 * row + 2, weights + 12 * 32 * row + 6 * 32, sum, T);
        nk_winograd_put(nk_winograd_output(d, q, row), d->out->pixel, NK_WINOGRAD_SIDE,
                        nk_winograd_stage(q, acc, &least, relu));
    }
    nk_winograd_end(d, clamps, q, least);
}

/* Products of T tiles and 16 outputs: sums over all inputs, and A' of their columns. `relu` and
 * `far` are those of what waits. */
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
        for (uint32_t c = 0; c < chunks; ++c, inputs += NK_WINOGRAD_FOUR, weights += 8 * 6 * 32) {
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
#define NK_WINOGRAD_SUMS(T, relu, far)                                                                            \
    static void nk_winograd_sums_##T##_##relu##_##far(const nk_dense *d, const nk_clamps *clamps,                 \
                                                      const int16_t *inputs, nk_winograd_waiting *to,             \
                                                      nk_winograd_waiting *q) {                                   \
        nk_winograd_sums(d, clamps, inputs, to, q, T, relu, far);                                                 \
    }
NK_WINOGRAD_SUMS(1, 0, 0) NK_WINOGRAD_SUMS(2, 0, 0) NK_WINOGRAD_SUMS(3, 0, 0)
NK_WINOGRAD_SUMS(4, 0, 0) NK_WINOGRAD_SUMS(4, 1, 0) NK_WINOGRAD_SUMS(4, 0, 1)
    // clang-format on

    /* By tiles at a time, and by what waits: only whole fours of tiles finish it on the way. */
    static inline nk_winograd_sums_function
    nk_winograd_sums_of(uint32_t tiles, const nk_winograd_waiting *q) {
    static const nk_winograd_sums_function few[] = {NULL, nk_winograd_sums_1_0_0,
                                                    nk_winograd_sums_2_0_0, nk_winograd_sums_3_0_0};
    return tiles < NK_WINOGRAD_TILES ? few[tiles]
           : q->done == q->tiles     ? nk_winograd_sums_4_0_0
           : q->w->far               ? nk_winograd_sums_4_0_1
           : q->w->lanes.relu        ? nk_winograd_sums_4_1_0
                                     : nk_winograd_sums_4_0_0;
}

/* A call's outputs, tile by tile. */
typedef struct {
    const nk_dense *d;
    const nk_clamps *clamps;
    const uint8_t *made; /* an nk_winograd for every 16 outputs */
    uint32_t tiles;      /* at hand, transformed */
    uint32_t turn;       /* which of the two below is filled; the other one is finished */
    nk_winograd_waiting waiting[2];
    nk_winograd_place places[NK_WINOGRAD_TILES];
    int16_t inputs[36 * NK_WINOGRAD_TILES * NK_WINOGRAD_INPUTS] __attribute__((aligned(64)));
} nk_winograd_work;

/* Products of the tiles at hand. */
static void nk_winograd_multiply(nk_winograd_work *work) {
    const nk_dense *d = work->d;
    for (uint32_t c = 0; c < d->outputs; c += 16, work->turn ^= 1) {
        nk_winograd_waiting *q = &work->waiting[work->turn], *other = &work->waiting[!work->turn];
        q->w = (const nk_winograd *)(const void *)(work->made + c / 16 * nk_winograd_bytes(d));
        q->tiles = work->tiles, q->channel = c, q->done = 0;
        memcpy(q->places, work->places, sizeof q->places);
        nk_winograd_sums_of(work->tiles, other)(d, work->clamps, work->inputs, q, other);
    }
    work->tiles = 0;
}

/* What is left at the end. */
static void nk_winograd_flush(nk_winograd_work *work) {
    if (work->tiles) nk_winograd_multiply(work);
    nk_winograd_waiting *last = &work->waiting[!work->turn];
    while (last->done < last->tiles) nk_winograd_finish(work->d, work->clamps, last);
}

/* The row of tiles whose first input row is y; rows from `end` on are not asked for, and may not be
 * there. */
static inline nk_winograd_strip nk_winograd_strip_of(const nk_dense *d, uint32_t image, int32_t y,
                                                     int32_t end, const nk_columns *columns,
                                                     const uint8_t *absent) {
    nk_winograd_strip s = {.all = 1, .columns = *columns};
    for (int32_t i = 0; i < 6; ++i) {
        const int inside = y + i >= 0 && y + i < nk_min(end, (int32_t)d->in->height);
        s.at[i] = absent, s.step[i] = 0;
        s.all &= inside;
        if (!inside || !columns->inside) continue;
        s.at[i] = nk_row(d->in, image, y + i) + (size_t)columns->first * d->in->pixel + d->first_in;
        s.step[i] = d->in->pixel;
    }
    return s;
}

/* Tiles of output rows [y, row1), four at most, and columns from x on; B' of their inputs goes to
 * `made`. */
static void nk_winograd_row(nk_winograd_work *work, uint32_t image, int32_t y, int32_t row1,
                            int32_t x, int32_t columns, int16_t *made) {
    enum { SIDE = NK_WINOGRAD_SIDE, HALO = NK_WINOGRAD_SPAN - NK_WINOGRAD_SIDE };
    const nk_dense *d = work->d;
    const int32_t rows = nk_min(SIDE, row1 - y), top = y - d->p->pad_top;
    const uint32_t filled = nk_blocks((uint32_t)columns, SIDE) * SIDE + HALO;
    uint8_t absent[NK_WINOGRAD_INPUTS];
    memset(absent, (uint8_t)d->p->input_zero, d->inputs);
    const nk_columns c = nk_columns_of(d, x - d->p->pad_left, 1, filled);
    const nk_winograd_strip strip =
        nk_winograd_strip_of(d, image, top, top + rows + HALO, &c, absent);
    if (d->flip) nk_winograd_down(d, &strip, made, 1);
    else nk_winograd_down(d, &strip, made, 0);
    for (int32_t at = 0; at < columns; at += SIDE) {
        const uint32_t t = work->tiles++;
        work->places[t] = (nk_winograd_place){image, y, x + at, rows, nk_min(SIDE, columns - at)};
        nk_winograd_across(d->inputs / NK_WINOGRAD_CHUNK, made + (size_t)at * 32, filled,
                           work->inputs + (size_t)t * 6 * NK_WINOGRAD_CHUNK);
        if (work->tiles == NK_WINOGRAD_TILES) nk_winograd_multiply(work);
    }
}

/* All of a call's rows; `weights` has an nk_winograd for every 16 outputs. */
static void nk_winograd_run(const nk_dense *d, const uint8_t *weights, const nk_clamps *clamps) {
    enum { SIDE = NK_WINOGRAD_SIDE, HALO = NK_WINOGRAD_SPAN - NK_WINOGRAD_SIDE };
    int16_t made[NK_WINOGRAD_ROW / 2] __attribute__((aligned(64)));
    nk_winograd_work work;
    work.d = d, work.clamps = clamps, work.made = weights;
    work.tiles = work.turn = work.waiting[1].tiles = work.waiting[1].done = 0;
    const int32_t width = (int32_t)d->out->width, row1 = d->call->row1,
                  most = (NK_WINOGRAD_ROW / 12 / (int32_t)d->inputs - HALO) / SIDE * SIDE;
    for (uint32_t image = 0; image < d->out->batch; ++image)
        for (int32_t y = d->call->row0; y < row1; y += SIDE)
            for (int32_t x = 0; x < width; x += most) {
                if (nk_stopped(d->call)) return;
                nk_winograd_row(&work, image, y, row1, x, nk_min(most, width - x), made);
            }
    nk_winograd_flush(&work);
}

#endif
#endif
