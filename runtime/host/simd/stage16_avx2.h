/* The requantize stage for accumulators of 16 channels in their natural order, with the offset of
 * 2^31, in the two forms of stage_avx512.h. This instruction set rounds as the thread says, so that
 * each rounding of the float form errs by twice as much at most, the last one by 1: below 8 in all,
 * and outputs less than 16 above a multiple of 2^16 take the integer form. */
#ifndef NK_STAGE16_AVX2_H
#define NK_STAGE16_AVX2_H

#include "stage_avx2.h"

#if NK_HAS_X86

/* Each for |bias| and for the sum of products, so that |acc| < 2^30 */
#define NK_ACC_LIMIT (1 << 29)

#define NK_DOUBT 16 /* twice the bound on the error */

typedef struct {
    nk_lanes8 half[2];
    __m256 factor[2], nudge[2], up[2]; /* 2^16 times m, g and z + 1/2 + g, the last plus 8 */
    __m256 middle;                     /* 2^16 times z + 1/2, plus 8 */
    int relu, real;                    /* real: the float form holds */
    int fast;                          /* 0: some channel needs the definition's arithmetic */
} nk_lanes16;

/* Up to 8 INT32 of a table; the others are 0. */
static inline __m256i nk_column8(const uint8_t *at, uint32_t count) {
    int32_t values[8] = {0};
    memcpy(values, at, 4 * (size_t)(count < 8 ? count : 8));
    return _mm256_loadu_si256((const __m256i *)(const void *)values);
}

static inline int nk_any8(__m256i lanes) {
    return _mm256_movemask_ps(_mm256_castsi256_ps(lanes)) != 0;
}

/* Half `i`'s constants of the float form; 1 when no sum of products up to `most` leaves its range.
 */
static inline int nk_lanes16_real(nk_lanes16 *k, uint32_t i, __m256i bias, int32_t most) {
    const __m256i exponent = k->half[i].shift, one = _mm256_set1_epi32(127 - 15);
    const __m256 power =
        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(one, exponent), 23));
    const __m256 g = _mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_sub_epi32(_mm256_set1_epi32(127 + 15), exponent), 23)); /* 2^16 * 2^-(e+1) */
    k->factor[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(k->half[i].multiplier), power);
    k->nudge[i] = _mm256_and_ps(g, _mm256_castsi256_ps(k->half[i].sign));
    k->up[i] = _mm256_add_ps(k->middle, k->nudge[i]);
    const __m256i largest = _mm256_add_epi32(_mm256_abs_epi32(bias), _mm256_set1_epi32(most));
    const __m256 reach = _mm256_mul_ps(_mm256_cvtepi32_ps(largest), k->factor[i]);
    /* Head room as in stage_avx512.h. */
    const __m256 limit = _mm256_set1_ps(0x1p31f - 0x1p23f - 0x1p18f);
    return _mm256_movemask_ps(_mm256_cmp_ps(reach, limit, _CMP_NLT_UQ)) == 0;
}

/* Constants of channels [channel, channel + count) of a stage whose sums of products are at most
 * `most` in magnitude; `c` are the stage's own. */
static inline nk_lanes16 nk_lanes16_of(const nk_stage *stage, const nk_clamps8 *c, size_t channel,
                                       uint32_t count, int32_t most) {
    const int16_t zero = (int16_t)_mm256_extract_epi16(c->zero, 0);
    nk_lanes16 k;
    k.fast = k.real = 1;
    k.relu = stage->low >= stage->zero;
    k.middle = _mm256_set1_ps((float)zero * 0x1p16f + 0x1p15f + NK_DOUBT / 2.0f);
    for (uint32_t i = 0; i < 2; ++i) {
        const uint8_t *at = stage->table + 4 * (channel + 8 * i);
        const uint32_t left = count > 8 * i ? count - 8 * i : 0;
        const __m256i bias = nk_column8(at, left), m = nk_column8(at + stage->column, left);
        const __m256i raw =
            _mm256_max_epi32(nk_column8(at + 2 * stage->column, left), _mm256_set1_epi32(-31));
        k.half[i] = nk_lanes8_of(m, _mm256_sub_epi32(_mm256_setzero_si256(), raw));
        const __m256i wide =
            _mm256_cmpgt_epi32(_mm256_abs_epi32(bias), _mm256_set1_epi32(NK_ACC_LIMIT - 1));
        const __m256i odd = _mm256_or_si256(_mm256_or_si256(m, _mm256_abs_epi32(bias)),
                                            wide); /* |INT32_MIN| is negative */
        const __m256i left_shift = _mm256_cmpgt_epi32(raw, _mm256_setzero_si256());
        k.fast &= !nk_any8(_mm256_or_si256(odd, left_shift));
        k.real &= k.fast && nk_lanes16_real(&k, i, bias, most);
    }
    return k;
}

/* Two pixels of accumulators, `stride` lanes apart, to 2 x 16 bytes. */
static inline __attribute__((always_inline)) __m256i nk_stage16_two(const nk_clamps8 *c,
                                                                    const nk_lanes16 *k,
                                                                    const int32_t *acc,
                                                                    size_t stride) {
    __m256i v[4];
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j)
        v[j] = nk_rescale8(
            &k->half[j % 2],
            _mm256_loadu_si256((const __m256i *)(const void *)(acc + j / 2 * stride + j % 2 * 8)));
    return nk_bytes32(c, v[0], v[1], v[2], v[3]);
}

/* The same in the float form; *doubtful when it may be wrong. */
static inline __attribute__((always_inline)) __m256i nk_stage16_real(const nk_clamps8 *c,
                                                                     const nk_lanes16 *k,
                                                                     const int32_t *acc,
                                                                     size_t stride, int *doubtful,
                                                                     const int relu) {
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    __m256i v[4];
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j) {
        const __m256i sum = _mm256_xor_si256(
            _mm256_loadu_si256((const __m256i *)(const void *)(acc + j / 2 * stride + j % 2 * 8)),
            sign);
        const __m256 nudge = _mm256_or_ps(_mm256_castsi256_ps(_mm256_and_si256(sum, sign)),
                                          k->nudge[j % 2]); /* with the sign of the sum */
        const __m256 rest = relu ? k->up[j % 2] : _mm256_add_ps(k->middle, nudge);
        v[j] = _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), k->factor[j % 2], rest));
    }
    const __m256i least =
        _mm256_min_epu16(_mm256_min_epu16(v[0], v[1]), _mm256_min_epu16(v[2], v[3]));
    *doubtful = !_mm256_testz_si256(_mm256_subs_epu16(_mm256_set1_epi16(NK_DOUBT), least),
                                    _mm256_set1_epi32(0xFFFF));
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j) v[j] = _mm256_srai_epi32(v[j], 16);
    const __m256i words[2] = {_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3])};
    __m256i bytes = _mm256_packs_epi16(words[0], words[1]);
    bytes = _mm256_max_epi8(bytes, _mm256_packs_epi16(c->low, c->low));
    bytes = _mm256_min_epi8(bytes, _mm256_packs_epi16(c->high, c->high));
    return _mm256_permutevar8x32_epi32(_mm256_xor_si256(bytes, c->flip),
                                       _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

enum { NK_INTEGER, NK_REAL, NK_RELU };

/* `count` pixels in one form. */
static inline __attribute__((always_inline)) void nk_stage16_loop(
    const nk_clamps8 *clamps, const nk_lanes16 *lanes, uint32_t channels, const int32_t *acc,
    size_t stride, uint32_t count, uint8_t *to, size_t pixel, const int form) {
    const nk_clamps8 c = *clamps; /* stores to bytes cannot reach these */
    const nk_lanes16 k = *lanes;
    for (uint32_t i = 0; i < count; i += 2, acc += 2 * stride, to += 2 * pixel) {
        const size_t next = i + 1 < count ? stride : 0;
        int doubtful = 1;
        __m256i bytes;
        if (form != NK_INTEGER)
            bytes = nk_stage16_real(&c, &k, acc, next, &doubtful, form == NK_RELU);
        if (form == NK_INTEGER || __builtin_expect(doubtful, 0))
            bytes = nk_stage16_two(&c, &k, acc, next);
        if (channels == 16) {
            _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(bytes));
            if (next)
                _mm_storeu_si128((__m128i *)(void *)(to + pixel),
                                 _mm256_extracti128_si256(bytes, 1));
            continue;
        }
        uint8_t rest[32];
        _mm256_storeu_si256((__m256i *)(void *)rest, bytes);
        memcpy(to, rest, channels);
        if (next) memcpy(to + pixel, rest + 16, channels);
    }
}

/* `count` pixels of accumulators for `channels` <= 16 channels from `channel` on; `fits` is what
 * nk_clamps8_of answered. */
static __attribute__((noinline)) void nk_stage16(const nk_stage *stage, const nk_clamps8 *clamps,
                                                 int fits, const nk_lanes16 *lanes, size_t channel,
                                                 uint32_t channels, const int32_t *acc,
                                                 size_t stride, uint32_t count, uint8_t *to,
                                                 size_t pixel) {
    if (!fits || !lanes->fast || stage->rounding != NEUTRON_ROUNDING_DOUBLE) {
        for (uint32_t i = 0; i < count; ++i, acc += stride, to += pixel)
            for (uint32_t c = 0; c < channels; ++c)
                to[c] =
                    nk_stage_output(stage, channel + c, (int32_t)((uint32_t)acc[c] ^ 0x80000000u));
        return;
    }
    if (!lanes->real)
        nk_stage16_loop(clamps, lanes, channels, acc, stride, count, to, pixel, NK_INTEGER);
    else if (lanes->relu)
        nk_stage16_loop(clamps, lanes, channels, acc, stride, count, to, pixel, NK_RELU);
    else nk_stage16_loop(clamps, lanes, channels, acc, stride, count, to, pixel, NK_REAL);
    for (uint32_t i = 0; stage->lut && i < count; ++i, to += pixel)
        for (uint32_t b = 0; b < channels; ++b) to[b] = stage->lut[to[b]];
}

#endif
#endif
