/* nk_mbqm of eight lanes by one multiplier and shift, for any number: products of 64 bits of even
 * and odd lanes, and the definition's own rounding shift, which does not overflow. */
#ifndef NK_MBQM_AVX2_H
#define NK_MBQM_AVX2_H

#include "nk_simd.h"

#if NK_HAS_X86

#include <immintrin.h>

typedef struct {
    __m256i multiplier, right, mask, threshold;
    __m128i left;
} nk_scale8;

/* Multipliers >= 0, shifts -31 to 30. */
static inline nk_scale8 nk_scale8_of(int32_t multiplier, int32_t shift) {
    const int32_t right = nk_max(-shift, 0), mask = (int32_t)(((uint32_t)1 << right) - 1u);
    nk_scale8 k;
    k.multiplier = _mm256_set1_epi32(multiplier);
    k.right = _mm256_set1_epi32(right);
    k.mask = _mm256_set1_epi32(mask);
    k.threshold = _mm256_set1_epi32(mask >> 1);
    k.left = _mm_cvtsi32_si128(nk_max(shift, 0));
    return k;
}

/* nk_rdp by the scale's right shift. */
static inline __attribute__((always_inline)) __m256i nk_rdp8(const nk_scale8 *k, __m256i x) {
    const __m256i threshold = _mm256_sub_epi32(k->threshold, _mm256_srai_epi32(x, 31));
    const __m256i up = _mm256_cmpgt_epi32(_mm256_and_si256(x, k->mask), threshold);
    return _mm256_sub_epi32(_mm256_srav_epi32(x, k->right), up);
}

static inline __attribute__((always_inline)) __m256i nk_mbqm8(const nk_scale8 *k, __m256i x) {
    const __m256i half = _mm256_set1_epi64x(1 << 30), by = k->multiplier;
    const __m256i moved = _mm256_sll_epi32(x, k->left);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(moved, by), half);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(moved, 32), by), half);
    return nk_rdp8(
        k, _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xAA));
}

/* Sixteen numbers to elements of 16 bits in order. */
static inline __attribute__((always_inline)) __m256i nk_words16(__m256i first, __m256i last,
                                                                __m256i low, __m256i high) {
    const __m256i words = _mm256_packs_epi32(first, last);
    return _mm256_permute4x64_epi64(_mm256_min_epi16(_mm256_max_epi16(words, low), high), 0xD8);
}

/* Eight elements of 16 bits. */
static inline __attribute__((always_inline)) __m256i nk_halves8(const uint8_t *from) {
    return _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}

#endif
#endif
