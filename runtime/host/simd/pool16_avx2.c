/* max_pool2d, avg_pool2d and pool_sum of 16-bit activations, 8 channels side by side. */
#include "loops.h"

#if NK_HAS_X86

#include <immintrin.h>

#include "pool16.h"

static inline __m128i load8(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* The clamp's lower end is one more tap. */
static void max8(const nk_pool *t, uint32_t channel, uint8_t *to) {
    const size_t first = (size_t)t->columns.first * t->pixel + 2 * (size_t)channel;
    const int32_t columns = t->columns.last - t->columns.first;
    __m128i best = _mm_set1_epi16((int16_t)t->low);
    for (int32_t i = 0; i < t->count; ++i) {
        const uint8_t *at = t->rows[i] + first;
        for (int32_t x = columns; x > 0; --x, at += t->pixel) best = _mm_max_epi16(best, load8(at));
    }
    _mm_storeu_si128((__m128i *)(void *)to, _mm_min_epi16(best, _mm_set1_epi16((int16_t)t->high)));
}

int nk_max_pool2d16_avx2(const nk_call *call, const nk_stage *stage) {
    return nk_pool16(call, stage, max8);
}

static inline __m256i mean(__m256i sum, int32_t n) {
    if (n > NK_POOL_TAPS) {
        int32_t each[8];
        _mm256_storeu_si256((__m256i *)(void *)each, sum);
        for (int m = 0; m < 8; ++m) each[m] = nk_exact_mean(each[m], n);
        return _mm256_loadu_si256((const __m256i *)(const void *)each);
    }
    const __m256 inverse = _mm256_set1_ps(1.0f / (float)n), half = _mm256_set1_ps(0.5f / (float)n);
    const __m256i dividend = _mm256_add_epi32(_mm256_abs_epi32(sum), _mm256_set1_epi32(n / 2));
    const __m256 quotient =
        _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(dividend), inverse), half);
    return _mm256_sign_epi32(_mm256_cvttps_epi32(quotient), sum);
}

static void mean8(const nk_pool *t, uint32_t channel, uint8_t *to) {
    const size_t first = (size_t)t->columns.first * t->pixel + 2 * (size_t)channel;
    const int32_t columns = nk_max(t->columns.last - t->columns.first, 0), n = t->count * columns;
    __m256i sum = _mm256_setzero_si256();
    for (int32_t i = 0; i < t->count && columns; ++i) {
        const uint8_t *at = t->rows[i] + first;
        for (int32_t x = columns; x > 0; --x, at += t->pixel)
            sum = _mm256_add_epi32(sum, _mm256_cvtepi16_epi32(load8(at)));
    }
    const __m256i v = n ? mean(sum, n) : sum;
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i low = _mm_set1_epi16((int16_t)t->low), high = _mm_set1_epi16((int16_t)t->high);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_min_epi16(_mm_max_epi16(words, low), high));
}

int nk_avg_pool2d16_avx2(const nk_call *call, const nk_stage *stage) {
    return nk_pool16(call, stage, mean8);
}

int nk_pool_sum16_avx2(const nk_call *call) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_operand *in = &call->operands[NK_POOL_SUM_INPUT],
                     *out = &call->operands[NK_POOL_SUM_OUTPUT];
    uint8_t *sums = nk_row(out, 0, 0);
    if (out->channels % NK_POOL_LANES) return 0;
    for (uint32_t c = 0; c < out->channels; c += NK_POOL_LANES) {
        __m256i *at = (__m256i *)(void *)(sums + 4 * (size_t)c);
        __m256i sum = call->row0 == 0 ? _mm256_setzero_si256() : _mm256_loadu_si256(at);
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const uint8_t *from = nk_row(in, 0, y) + 2 * (size_t)c;
            for (uint32_t x = 0; x < in->width; ++x, from += in->pixel)
                sum = _mm256_add_epi32(sum, _mm256_cvtepi16_epi32(load8(from)));
        }
        _mm256_storeu_si256(at, sum);
    }
    return 1;
}

#endif
