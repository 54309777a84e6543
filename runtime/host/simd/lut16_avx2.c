/* lut16, 8 elements at a time: both ends of a chord are one gather of two neighbouring entries. */
#include "loops.h"

#if NK_HAS_X86

#include <immintrin.h>

#define LANES 8
#define LAST 255 /* entry: from there on the functions have reached their end */

typedef struct {
    const uint8_t *table;
    __m256i multiplier, half;
    __m128i shift;
    int tangent;
} constants;

/* The table at |x| / 2^bits, with `bits` fraction bits; `most` beyond the last entry. */
static inline __attribute__((always_inline)) __m256i interpolated(const constants *k, __m256i x,
                                                                  const int bits, int32_t most) {
    const __m256i size = _mm256_abs_epi32(x); /* INT32_MIN is the unsigned number it stands for */
    const __m256i at = _mm256_srli_epi32(size, bits);
    const __m256i rest = _mm256_and_si256(size, _mm256_set1_epi32((1 << bits) - 1));
    const __m256i inside = _mm256_min_epu32(at, _mm256_set1_epi32(LAST - 1));
    const __m256i two = _mm256_i32gather_epi32((const int *)(const void *)k->table, inside, 2);
    const __m256i low = _mm256_and_si256(two, _mm256_set1_epi32(0xFFFF)),
                  high = _mm256_srli_epi32(two, 16);
    const __m256i y = _mm256_add_epi32(_mm256_slli_epi32(low, bits),
                                       _mm256_mullo_epi32(rest, _mm256_sub_epi32(high, low)));
    const __m256i beyond = _mm256_cmpeq_epi32(_mm256_max_epu32(at, _mm256_set1_epi32(LAST)), at);
    return _mm256_blendv_epi8(y, _mm256_set1_epi32(most), beyond);
}

static inline __attribute__((always_inline)) __m256i block(const constants *k, const uint8_t *in) {
    const __m256i values =
        _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)in));
    const __m256i x = _mm256_sra_epi32(
        _mm256_add_epi32(_mm256_mullo_epi32(values, k->multiplier), k->half), k->shift);
    const __m256i sign = _mm256_srai_epi32(x, 31);
    if (k->tangent) {
        const __m256i y =
            _mm256_sub_epi32(interpolated(k, x, 8, 0xFFFF << 8), _mm256_set1_epi32(1 << 23));
        /* Rounded halves up, and of what is negated 1 is taken off. */
        const __m256i turned = _mm256_sub_epi32(_mm256_xor_si256(y, sign), sign);
        return _mm256_srai_epi32(
            _mm256_add_epi32(_mm256_add_epi32(turned, _mm256_set1_epi32(1 << 7)), sign), 8);
    }
    const __m256i y = interpolated(k, x, 9, 0x7FFF << 10);
    const __m256i mirrored = _mm256_sub_epi32(_mm256_set1_epi32((1 << 25) - 1), y);
    const __m256i both = _mm256_blendv_epi8(y, mirrored, sign);
    return _mm256_srai_epi32(_mm256_add_epi32(both, _mm256_set1_epi32(1 << 9)), 10);
}

/* The low 16 bits of each lane, as the definition stores them. */
static inline __attribute__((always_inline)) void store(uint8_t *to, __m256i v) {
    const __m256i kept = _mm256_and_si256(v, _mm256_set1_epi32(0xFFFF));
    _mm_storeu_si128((__m128i *)(void *)to, _mm_packus_epi32(_mm256_castsi256_si128(kept),
                                                             _mm256_extracti128_si256(kept, 1)));
}

static void look_up(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const constants k = *(const constants *)call->context;
    uint8_t rest[2 * LANES] = {0}, result[2 * LANES];
    for (; count >= LANES; count -= LANES, in += 2 * LANES, out += 2 * LANES)
        store(out, block(&k, in));
    if (!count) return;
    memcpy(rest, in, 2 * (size_t)count);
    store(result, block(&k, rest));
    memcpy(out, result, 2 * (size_t)count);
}

int nk_lut16_avx2(const nk_call *call) {
    const nk_lut16_params *p = (const nk_lut16_params *)(const void *)call->params;
    constants k = {call->operands[NK_LUT16_TABLE].data, _mm256_set1_epi32(p->multiplier),
                   _mm256_set1_epi32(p->shift > 0 ? 1 << (p->shift - 1) : 0),
                   _mm_cvtsi32_si128(p->shift), p->tangent};
    nk_call own = *call;
    own.context = &k;
    nk_walk1(&own, &own.operands[NK_LUT16_INPUT], &own.operands[NK_LUT16_OUTPUT], look_up);
    return 1;
}

#endif
