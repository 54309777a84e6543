/* The stage of 16-bit activations, 16 channels to a register: sums become elements in one of three
 * forms, or by the definition channel by channel. Short: 32 bits hold the sums (wide.h), products
 * of 64 bits are made for even and odd channels. Long: sums of 64 bits, which wrap as the
 * definition's do. Real: one rounding in doubles, as in wide_avx2.h. */
#ifndef NK_WIDE_AVX512_H
#define NK_WIDE_AVX512_H

#include <math.h>

#include "wide.h"

#if NK_HAS_X86

#include <immintrin.h>

#define NK_WIDE_LANES 16
#define NK_INLINE static inline __attribute__((always_inline))

enum { NK_WIDE_SHORT, NK_WIDE_LONG, NK_WIDE_REAL, NK_WIDE_DEFINITION };

/* Constants of 16 channels: of the short form for even and odd ones, of the others for the first
 * and the last 8. */
typedef struct {
    __m512i multiplier[2], half[2], shift[2];
    __m512i bias32;  /* short */
    __m512i bias[2]; /* long and real */
    __m512d factor[2];
    __m512i low, high; /* the clamp */
    const nk_wide_stage *stage;
    size_t channel;
    __mmask16 kept;
    uint8_t form, narrow;
} nk_wide16;

/* sum += products of pairs. Written out, because gcc 12 copies the accumulators of the intrinsic to
 * memory and back in every turn of a loop. */
NK_INLINE void nk_dot2(__m512i *sum, __m512i pairs, __m512i weights) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(*sum) : "v"(pairs), "v"(weights));
}

/* Channels [channel, channel + count) whose sums have `terms` products. */
static inline void nk_wide16_of(nk_wide16 *k, const nk_wide_stage *stage, size_t channel,
                                uint32_t count, uint64_t terms) {
    int64_t bias[16] = {0}, multiplier[16] = {0}, half[16] = {0}, shift[16] = {0};
    int32_t bias32[16] = {0};
    double factor[16] = {0};
    const int is_short = nk_wide_is_short(stage, channel, count, terms);
    const int real = stage->rounding == NEUTRON_ROUNDING_EXACT53;
    for (uint32_t m = 0; m < count; ++m) {
        const uint8_t *at = stage->table + 4 * (channel + m) + stage->column;
        const int32_t factor32 = nk_load32(at), by = nk_load32(at + stage->column);
        const uint32_t to = is_short ? m % 2 * 8 + m / 2 : m;
        bias[m] = nk_wide_stage_bias(stage, channel + m);
        bias32[m] = (int32_t)(uint32_t)(uint64_t)bias[m];
        multiplier[to] = factor32;
        shift[to] = nk_clamp(by, 1, 62);
        half[to] = (int64_t)1 << (shift[to] - 1);
        const uint64_t mantissa =
            (uint64_t)((uint32_t)factor32 & 0x7FFFFFFFu) << 22 | ((uint32_t)by >> 8 & 0x3FFFFFu);
        if (real) factor[m] = ldexp((double)mantissa, -nk_clamp(by & 0xFF, 1, 127));
    }
    k->bias32 = _mm512_loadu_si512(bias32);
    for (int h = 0; h < 2; ++h) {
        k->multiplier[h] = _mm512_loadu_si512(multiplier + 8 * h);
        k->half[h] = _mm512_loadu_si512(half + 8 * h);
        k->shift[h] = _mm512_loadu_si512(shift + 8 * h);
        k->bias[h] = _mm512_loadu_si512(bias + 8 * h);
        k->factor[h] = _mm512_loadu_pd(factor + 8 * h);
    }
    k->low = _mm512_set1_epi32(stage->low), k->high = _mm512_set1_epi32(stage->high);
    k->stage = stage, k->channel = channel, k->narrow = stage->narrow;
    k->kept = (__mmask16)((1u << count) - 1u);
    k->form = is_short                                     ? NK_WIDE_SHORT
              : stage->rounding == NEUTRON_ROUNDING_SINGLE ? NK_WIDE_LONG
              : real                                       ? NK_WIDE_REAL
                                                           : NK_WIDE_DEFINITION;
}

NK_INLINE void nk_wide_put(const nk_wide16 *k, __m512i values, uint8_t *to) {
    const __m512i clamped = _mm512_min_epi32(_mm512_max_epi32(values, k->low), k->high);
    const __m256i words = _mm512_cvtepi32_epi16(clamped);
    if (k->kept == 0xFFFF) _mm256_storeu_si256((__m256i *)(void *)to, words);
    else _mm256_mask_storeu_epi16(to, k->kept, words);
}

NK_INLINE void nk_wide_put_short(const nk_wide16 *k, __m512i acc, uint8_t *to) {
    const __m512i total = _mm512_add_epi32(acc, k->bias32);
    const __m512i even = _mm512_mul_epi32(total, k->multiplier[0]);
    const __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(total, 32), k->multiplier[1]);
    const __m512i first = _mm512_srlv_epi64(_mm512_add_epi64(even, k->half[0]), k->shift[0]);
    const __m512i second = _mm512_srlv_epi64(_mm512_add_epi64(odd, k->half[1]), k->shift[1]);
    nk_wide_put(k, _mm512_mask_shuffle_epi32(first, 0xAAAA, second, _MM_PERM_CDAB), to);
}

/* 8 channels of the long and the real form, before the clamp. */
NK_INLINE __m256i nk_wide_rescale8(const nk_wide16 *k, __m512i acc, const int h) {
    __m512i total = _mm512_add_epi64(acc, k->bias[h]);
    if (k->narrow) total = _mm512_cvtepi32_epi64(_mm512_cvtepi64_epi32(total));
    if (k->form == NK_WIDE_LONG) {
        const __m512i product = _mm512_mullo_epi64(total, k->multiplier[h]);
        return _mm512_cvtepi64_epi32(
            _mm512_srav_epi64(_mm512_add_epi64(product, k->half[h]), k->shift[h]));
    }
    __m512d t = _mm512_mul_pd(_mm512_cvtepi64_pd(total), k->factor[h]);
    t = _mm512_min_pd(_mm512_max_pd(t, _mm512_set1_pd(-2147483648.0)),
                      _mm512_set1_pd(2147483647.0));
    /* The largest number below one half: adding it and cutting rounds halves away. */
    const __m512d half =
        _mm512_or_pd(_mm512_set1_pd(0.49999999999999994), _mm512_and_pd(t, _mm512_set1_pd(-0.0)));
    return _mm512_cvttpd_epi32(_mm512_add_pd(t, half));
}

/* 16 sums of 64 bits. */
static inline void nk_wide_finish64(const nk_wide16 *k, __m512i first, __m512i last, uint8_t *to) {
    if (k->form != NK_WIDE_DEFINITION) {
        nk_wide_put(k,
                    _mm512_inserti64x4(_mm512_castsi256_si512(nk_wide_rescale8(k, first, 0)),
                                       nk_wide_rescale8(k, last, 1), 1),
                    to);
        return;
    }
    int64_t acc[16];
    _mm512_storeu_si512(acc, first);
    _mm512_storeu_si512(acc + 8, last);
    for (uint32_t m = 0; k->kept >> m & 1; ++m)
        nk_store16(to + 2 * m, nk_wide_stage_output(k->stage, k->channel + m, acc[m]));
}

/* 16 sums of 32 bits. */
NK_INLINE void nk_wide_finish32(const nk_wide16 *k, __m512i acc, uint8_t *to) {
    if (k->form == NK_WIDE_SHORT) nk_wide_put_short(k, acc, to);
    else
        nk_wide_finish64(k, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(acc)),
                         _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(acc, 1)), to);
}

#endif
#endif
