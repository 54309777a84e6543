/* requantize from or to elements of 16 bits, 16 at a time. */
#include "loops.h"

#if NK_HAS_X86

#include "mbqm_avx2.h"
#include "runs.h"

#define LANES 16

typedef struct {
    nk_scale8 scale;
    __m256i zero_in, zero_out, low, high;
    uint8_t from, to; /* element types */
} constants;

static inline __attribute__((always_inline)) __m256i widen(const uint8_t *from, uint8_t dtype) {
    if (dtype == NEUTRON_DTYPE_INT16) return nk_halves8(from);
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)from);
    return dtype == NEUTRON_DTYPE_INT8 ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}

static inline __attribute__((always_inline)) __m256i rescaled(const constants *k, __m256i x) {
    const __m256i v = nk_mbqm8(&k->scale, _mm256_sub_epi32(x, k->zero_in));
    return _mm256_add_epi32(v, k->zero_out);
}

/* Packing saturates to 16 bits, which the clamp hides. */
static inline __attribute__((always_inline)) void block(const void *constants_of_run,
                                                        const uint8_t *in, uint8_t *out) {
    const constants *k = constants_of_run;
    const size_t half = k->from == NEUTRON_DTYPE_INT16 ? LANES : LANES / 2;
    const __m256i words = nk_words16(rescaled(k, widen(in, k->from)),
                                     rescaled(k, widen(in + half, k->from)), k->low, k->high);
    if (k->to == NEUTRON_DTYPE_INT16) {
        _mm256_storeu_si256((__m256i *)(void *)out, words);
        return;
    }
    const __m256i bytes = _mm256_and_si256(words, _mm256_set1_epi16(0xFF));
    _mm_storeu_si128((__m128i *)(void *)out, _mm_packus_epi16(_mm256_castsi256_si128(bytes),
                                                              _mm256_extracti128_si256(bytes, 1)));
}

static void rescale(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const constants k = *(const constants *)call->context;
    const size_t item_in = nk_item(&call->operands[NK_REQUANTIZE_INPUT]),
                 item_out = nk_item(&call->operands[NK_REQUANTIZE_OUTPUT]);
    nk_run_blocks1(block, &k, LANES, in, item_in, out, item_out, count);
}

int nk_requantize16_avx2(const nk_call *call) {
    const nk_requantize_params *p = (const nk_requantize_params *)(const void *)call->params;
    constants k;
    k.from = call->operands[NK_REQUANTIZE_INPUT].dtype;
    k.to = call->operands[NK_REQUANTIZE_OUTPUT].dtype;
    k.scale = nk_scale8_of(p->multiplier, p->shift);
    k.zero_in = _mm256_set1_epi32(p->input_zero), k.zero_out = _mm256_set1_epi32(p->output_zero);
    k.low = _mm256_set1_epi16((int16_t)p->clamp_low);
    k.high = _mm256_set1_epi16((int16_t)p->clamp_high);
    nk_call own = *call;
    own.context = &k;
    nk_walk1(&own, &own.operands[NK_REQUANTIZE_INPUT], &own.operands[NK_REQUANTIZE_OUTPUT],
             rescale);
    return 1;
}

#endif
