/* Requantizing eight lanes; the arithmetic and its proof are those of stage_avx512.h. */
#ifndef NK_STAGE_AVX2_H
#define NK_STAGE_AVX2_H

#include "nk_simd.h"

#if NK_HAS_X86

#include <immintrin.h>

/* Constants of 8 lanes; `sign` is all ones where h < 0 takes one off. */
typedef struct {
    __m256i multiplier, doubled, doubled_odd, round, shift, sign;
} nk_lanes8;

/* Multipliers >= 0, exponents (right shifts) 0 to 31. */
static inline nk_lanes8 nk_lanes8_of(__m256i multiplier, __m256i exponent) {
    nk_lanes8 k;
    k.multiplier = multiplier;
    k.doubled = _mm256_add_epi32(multiplier, multiplier);
    k.doubled_odd = _mm256_srli_epi64(k.doubled, 32);
    k.shift = exponent;
    k.round = _mm256_srli_epi32(_mm256_sllv_epi32(_mm256_set1_epi32(1), exponent), 1);
    k.sign = _mm256_cmpgt_epi32(exponent, _mm256_setzero_si256());
    return k;
}

/* Requantized, before zero point and clamp; `u` is the accumulator + 2^31, |accumulator| < 2^30. */
static inline __attribute__((always_inline)) __m256i nk_rescale8(const nk_lanes8 *k, __m256i u) {
    const __m256i half = _mm256_set1_epi64x((int64_t)1 << 31);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epu32(u, k->doubled), half);
    const __m256i odd =
        _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(u, 32), k->doubled_odd), half);
    const __m256i high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
    const __m256i h = _mm256_sub_epi32(high, k->multiplier);
    const __m256i down = _mm256_and_si256(_mm256_srai_epi32(h, 31), k->sign);
    return _mm256_srav_epi32(_mm256_add_epi32(_mm256_add_epi32(h, k->round), down), k->shift);
}

/* Zero point and clamp of a byte type as INT16 lanes; UINT8 is computed 128 lower and flipped back.
 */
typedef struct {
    __m256i zero, low, high, flip;
} nk_clamps8;

/* 1 when zero point and clamp are of the byte type, as the compiler makes them. */
static inline int nk_clamps8_of(nk_clamps8 *c, int is_signed, int32_t zero, int32_t low,
                                int32_t high) {
    const int32_t down = is_signed ? 0 : 128;
    c->zero = _mm256_set1_epi16((int16_t)(zero - down));
    c->low = _mm256_set1_epi16((int16_t)(low - down));
    c->high = _mm256_set1_epi16((int16_t)(high - down));
    c->flip = _mm256_set1_epi8((char)down);
    return zero - down >= -128 && zero - down <= 127 && low - down >= -128 && low <= high &&
           high - down <= 127;
}

/* 32 requantized lanes to bytes in order. */
static inline __attribute__((always_inline)) __m256i nk_bytes32(const nk_clamps8 *c, __m256i a,
                                                                __m256i b, __m256i d, __m256i e) {
    __m256i ab = _mm256_adds_epi16(_mm256_packs_epi32(a, b), c->zero);
    __m256i de = _mm256_adds_epi16(_mm256_packs_epi32(d, e), c->zero);
    ab = _mm256_min_epi16(_mm256_max_epi16(ab, c->low), c->high);
    de = _mm256_min_epi16(_mm256_max_epi16(de, c->low), c->high);
    const __m256i bytes = _mm256_xor_si256(_mm256_packs_epi16(ab, de), c->flip);
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Eight bytes as values of their type. */
static inline __attribute__((always_inline)) __m256i nk_widen8(const uint8_t *from, int is_signed) {
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)from);
    return is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}

#endif
#endif
