/* The requantize stage for 16 channels at a time, in their natural order or as pairs (c, c + 8) in neighbouring lanes, which
 * is how the products of packed blocks come out.
 *
 * Why it is exact. Accumulators carry an offset of 2^31, which makes them unsigned: u = acc + 2^31. With the doubled
 * multiplier 2M < 2^32 the product is u * 2M = acc * 2M + M * 2^32, so the upper half of u * 2M + 2^31 is
 * ((acc * M + 2^30) >> 31) + M = h + M for every acc; nothing overflows, because (2^32 - 1)(2^32 - 2) + 2^31 < 2^64.
 * h < 0 is then (h + M) < M, unsigned. The second rounding adds 2^(e-1) - (h < 0) and shifts by e, in 32 bits: with
 * |acc| < 2^30 also |h| < 2^30, and e <= 31 keeps the sum below 2^31. e = 0 adds nothing. Outputs beyond 16 bits
 * saturate on the way to bytes; the clamp to a byte's range hides that, and |h| < 2^30 keeps the definition's addition of
 * the zero point from wrapping.
 * Where the clamp starts at the zero point (RELU), results of h < 0 are at most 0 with or without the sign term and
 * clamp alike, so the term is left out.
 */
#ifndef NK_STAGE_AVX512_H
#define NK_STAGE_AVX512_H

#include "nk_simd.h"

#if NK_HAS_SIMD

#include <immintrin.h>

#define NK_ACC_LIMIT (1 << 29) /* each for |bias| and for the sum of products, so that |acc| < 2^30 */

/* Constants of 16 channels. */
typedef struct {
    __m512i multiplier, doubled, doubled_odd, round, shift;
    __m512i natural; /* shuffle that puts the bytes of each 128 bits in channel order */
    __mmask16 sign; /* lanes that take the sign term: those with e > 0 */
    int paired, relu;
    int fast; /* 0: some channel needs the definition's arithmetic */
} nk_lanes16;

/* What all channels of a stage share. */
typedef struct {
    __m512i zero;            /* INT16 lanes */
    __m512i low, high, flip; /* bytes */
    int fast;
} nk_clamps;

static inline __m512i nk_pair_lanes(__m512i natural) {
    const __m512i order = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return _mm512_permutexvar_epi32(order, natural);
}

static inline __mmask16 nk_first_lanes(uint32_t count) {
    return count >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1u << count) - 1u);
}

/* Output of bytes of one sign: UINT8 is computed 128 lower and flipped back. */
static inline nk_clamps nk_clamps_of(const nk_stage *stage, int is_signed) {
    const int32_t down = is_signed ? 0 : 128;
    const int32_t zero = stage->zero - down, low = stage->low - down, high = stage->high - down;
    nk_clamps c;
    c.zero = _mm512_set1_epi16((int16_t)zero);
    c.low = _mm512_set1_epi8((char)low);
    c.high = _mm512_set1_epi8((char)high);
    c.flip = _mm512_set1_epi8((char)down);
    c.fast = stage->rounding == NEUTRON_ROUNDING_DOUBLE && zero >= -128 && zero <= 127 && low >= -128 && low <= high && high <= 127;
    return c;
}

/* Constants of channels [channel, channel + count) of a stage. */
static inline nk_lanes16 nk_lanes16_of(const nk_stage *stage, size_t channel, uint32_t count, int paired) {
    const __mmask16 mask = nk_first_lanes(count);
    const uint8_t *at = stage->table + 4 * channel;
    const __m512i none = _mm512_setzero_si512();
    const __m512i bias = _mm512_maskz_loadu_epi32(mask, at), m = _mm512_maskz_loadu_epi32(mask, at + stage->column);
    const __m512i raw = _mm512_maskz_loadu_epi32(mask, at + 2 * stage->column);
    const __m512i exponent = _mm512_sub_epi32(none, _mm512_max_epi32(raw, _mm512_set1_epi32(-31)));
    nk_lanes16 lanes = {.paired = paired, .relu = stage->low >= stage->zero};
    lanes.fast = !_mm512_cmplt_epi32_mask(m, none) && !_mm512_cmplt_epi32_mask(exponent, none) &&
                 !_mm512_cmpge_epu32_mask(_mm512_add_epi32(bias, _mm512_set1_epi32(NK_ACC_LIMIT)),
                                          _mm512_set1_epi32(2 * NK_ACC_LIMIT));
    lanes.natural = _mm512_broadcast_i32x4(paired ? _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15)
                                                  : _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    lanes.multiplier = paired ? nk_pair_lanes(m) : m;
    lanes.shift = paired ? nk_pair_lanes(exponent) : exponent;
    lanes.doubled = _mm512_add_epi32(lanes.multiplier, lanes.multiplier);
    lanes.doubled_odd = _mm512_srli_epi64(lanes.doubled, 32);
    const __m512i half = _mm512_srli_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), lanes.shift), 1);
    lanes.round = _mm512_sub_epi32(half, lanes.multiplier);
    lanes.sign = _mm512_cmpgt_epi32_mask(lanes.shift, none);
    return lanes;
}

/* Requantized, before zero point and clamp; `u` carries the offset of 2^31. */
static inline __attribute__((always_inline)) __m512i nk_rescale16(const nk_lanes16 *k, __m512i u, const int relu) {
    const __m512i half = _mm512_set1_epi64((int64_t)1 << 31);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(u, 32), k->doubled_odd);
    const __m512i even = _mm512_add_epi64(_mm512_mul_epu32(u, k->doubled), half);
    __m512i h = _mm512_mask_shuffle_epi32(_mm512_add_epi64(odd, half), 0x5555, even, _MM_PERM_DDBB);
    if (!relu) {
        const __mmask16 negative = _mm512_mask_cmplt_epu32_mask(k->sign, h, k->multiplier);
        h = _mm512_mask_sub_epi32(h, negative, h, _mm512_set1_epi32(1));
    }
    return _mm512_srav_epi32(_mm512_add_epi32(h, k->round), k->shift);
}

/* Four pixels of 16 lanes each to bytes, one pixel per 128 bits, channels in their natural order. */
static inline __attribute__((always_inline)) __m512i nk_bytes4(const nk_clamps *c, const nk_lanes16 *k, const __m512i v[4]) {
    const __m512i gather = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i front = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), c->zero);
    const __m512i back = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), c->zero);
    const __m512i bytes = _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(front, back), c->low), c->high);
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(gather, _mm512_xor_si512(bytes, c->flip)), k->natural);
}

/* Bytes of the pixels `acc`, `acc + stride` and so on, up to `left` of them. */
static inline __attribute__((always_inline)) __m512i nk_stage16_four(const nk_clamps *c, const nk_lanes16 *k, const int32_t *acc,
                                                                     size_t stride, uint32_t left, const int relu) {
    __m512i v[4];
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j) v[j] = nk_rescale16(k, _mm512_loadu_si512(acc + (j < left ? j : 0) * stride), relu);
    return nk_bytes4(c, k, v);
}

/* `count` pixels of accumulators, `stride` lanes apart, to bytes `pixel` apart. */
static inline __attribute__((always_inline)) void nk_stage16_full(const nk_clamps *clamps, const nk_lanes16 *lanes,
                                                                  const int32_t *acc, size_t stride, uint32_t count,
                                                                  uint8_t *to, size_t pixel, const int relu) {
    const nk_clamps own_clamps = *clamps, *c = &own_clamps; /* stores to bytes cannot reach these: they stay in registers */
    const nk_lanes16 own_lanes = *lanes, *k = &own_lanes;
    for (; count >= 4; count -= 4, acc += 4 * stride, to += 4 * pixel) {
        const __m512i bytes = nk_stage16_four(c, k, acc, stride, 4, relu);
        _mm_storeu_si128((__m128i *)(void *)to, _mm512_castsi512_si128(bytes));
        _mm_storeu_si128((__m128i *)(void *)(to + pixel), _mm512_extracti32x4_epi32(bytes, 1));
        _mm_storeu_si128((__m128i *)(void *)(to + 2 * pixel), _mm512_extracti32x4_epi32(bytes, 2));
        _mm_storeu_si128((__m128i *)(void *)(to + 3 * pixel), _mm512_extracti32x4_epi32(bytes, 3));
    }
    if (!count) return;
    const __m512i bytes = nk_stage16_four(c, k, acc, stride, count, relu);
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_castsi512_si128(bytes));
    if (count > 1) _mm_storeu_si128((__m128i *)(void *)(to + pixel), _mm512_extracti32x4_epi32(bytes, 1));
    if (count > 2) _mm_storeu_si128((__m128i *)(void *)(to + 2 * pixel), _mm512_extracti32x4_epi32(bytes, 2));
}

/* The same where only `channels` of the 16 exist. */
static inline void nk_stage16_part(const nk_clamps *c, const nk_lanes16 *k, const int32_t *acc, size_t stride, uint32_t count,
                                   uint8_t *to, size_t pixel, uint32_t channels) {
    for (uint32_t i = 0; i < count; i += 4, acc += 4 * stride) {
        uint8_t bytes[64];
        _mm512_storeu_si512(bytes, nk_stage16_four(c, k, acc, stride, count - i, 0));
        for (uint32_t j = 0; j < 4 && i + j < count; ++j, to += pixel) {
            if (channels == 8) memcpy(to, bytes + 16 * j, 8); /* an odd group of the packing; a length the compiler knows */
            else memcpy(to, bytes + 16 * j, channels);
        }
    }
}

/* The definition, for what the fast form excludes. */
static inline void nk_stage16_slow(const nk_stage *stage, int paired, size_t channel, const int32_t *acc, size_t stride,
                                   uint32_t count, uint8_t *to, size_t pixel, uint32_t channels) {
    for (uint32_t i = 0; i < count; ++i, acc += stride, to += pixel)
        for (uint32_t c = 0; c < channels; ++c)
            to[c] = nk_stage_output(stage, channel + c, (int32_t)((uint32_t)acc[!paired ? c : c < 8 ? 2 * c : 2 * c - 15] ^ 0x80000000u));
}

/* `count` pixels of accumulators, `stride` lanes apart, for `channels` <= 16 channels from `channel` on. */
static __attribute__((noinline)) void nk_stage16(const nk_stage *stage, const nk_clamps *c, const nk_lanes16 *k, size_t channel,
                                                 uint32_t channels, const int32_t *acc, size_t stride, uint32_t count,
                                                 uint8_t *to, size_t pixel) {
    if (!c->fast || !k->fast) {
        nk_stage16_slow(stage, k->paired, channel, acc, stride, count, to, pixel, channels);
        return;
    }
    if (channels != 16) nk_stage16_part(c, k, acc, stride, count, to, pixel, channels);
    else if (k->relu) nk_stage16_full(c, k, acc, stride, count, to, pixel, 1);
    else nk_stage16_full(c, k, acc, stride, count, to, pixel, 0);
    if (!stage->lut) return;
    for (uint32_t i = 0; i < count; ++i, to += pixel)
        for (uint32_t b = 0; b < channels; ++b) to[b] = stage->lut[to[b]];
}

#endif
#endif
