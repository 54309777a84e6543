/* G w G' of winograd_avx512.h: weights of 16 outputs, made once, with what else depends on them and
 * the table alone. */
#ifndef NK_WINOGRAD_WEIGHTS_AVX512_H
#define NK_WINOGRAD_WEIGHTS_AVX512_H

#include "tiles_avx512.h"

#if NK_HAS_X86

/* Transformed weights of 16 outputs: [6 columns][inputs / 2][6 rows][16 outputs][2 inputs]. */
static inline size_t nk_winograd_weights_bytes(const nk_dense *d) {
    return (size_t)36 * 2 * 16 * d->inputs;
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

#endif
#endif
