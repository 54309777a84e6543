/* lut, 32 elements at a time: 16 shuffles of 16 table bytes each. A shuffle gives 0 for indices
 * with the top bit set, so after subtracting 16 k times (saturating: what is negative stays so)
 * tables 0 to x / 16 still answer. Each table but the first is stored as its difference to the one
 * before, by exclusive or: what they answer together is the entry. The upper 128 entries work alike
 * on x ^ 0x80, and each half is silent for the other's indices. */
#include "loops.h"

#if NK_HAS_X86

#include <immintrin.h>

#define LANES 32

typedef struct {
    __m256i part[16];
} tables;

static tables tables_of(const uint8_t *table) {
    tables t;
    for (int i = 0; i < 16; ++i) {
        const __m128i here = _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * i));
        const __m128i before =
            i % 8 ? _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * (i - 1)))
                  : _mm_setzero_si128();
        t.part[i] = _mm256_broadcastsi128_si256(_mm_xor_si128(here, before));
    }
    return t;
}

static inline __m256i block(const tables *t, __m256i x) {
    const __m256i sixteen = _mm256_set1_epi8(16);
    __m256i low = x, high = _mm256_xor_si256(x, _mm256_set1_epi8((char)0x80));
    __m256i y = _mm256_xor_si256(_mm256_shuffle_epi8(t->part[0], low),
                                 _mm256_shuffle_epi8(t->part[8], high));
#pragma GCC unroll 8
    for (int i = 1; i < 8; ++i) {
        low = _mm256_subs_epi8(low, sixteen);
        high = _mm256_subs_epi8(high, sixteen);
        y = _mm256_xor_si256(y, _mm256_xor_si256(_mm256_shuffle_epi8(t->part[i], low),
                                                 _mm256_shuffle_epi8(t->part[8 + i], high)));
    }
    return y;
}

void nk_look_up_avx2(const uint8_t *table, const uint8_t *in, uint8_t *out, uint32_t count) {
    uint32_t i = 0;
    if (count >= 2 * LANES) {
        const tables t = tables_of(table);
        for (; i + LANES <= count; i += LANES)
            _mm256_storeu_si256(
                (__m256i *)(void *)(out + i),
                block(&t, _mm256_loadu_si256((const __m256i *)(const void *)(in + i))));
    }
    for (; i < count; ++i) out[i] = table[in[i]];
}

static void look_up(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    nk_look_up_avx2(call->operands[NK_LUT_TABLE].data, in, out, count);
}

int nk_lut_avx2(const nk_call *call) {
    nk_walk1(call, &call->operands[NK_LUT_INPUT], &call->operands[NK_LUT_OUTPUT], look_up);
    return 1;
}

#endif
