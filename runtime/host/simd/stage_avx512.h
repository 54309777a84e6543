/* The requantize stage for 16 channels at a time, in their natural order or as pairs (c, c + 8) in
 * neighbouring lanes, which is how the products of packed blocks come out. Two forms, both equal to
 * nk_mbqm, zero point and clamp:
 *
 * Float with 16 fraction bits, checked. With m = M * 2^-(31+e) and g = 2^-(e+1) (0 for e = 0) the
 * definition's two roundings are one: out = floor(y) for y = acc * m + g + 1/2 where acc >= 0 and y
 * = acc * m - g + 1/2 where acc < 0; by nested floors, h >= k * 2^e - 2^(e-1) [+ 1 for h < 0]
 * solved for acc. With the zero point z, what is computed is i = (y + z) * 2^16 + 4 as an integer.
 * Outputs that do not clamp have |y + z| <= 129, so |y| <= 257: converting acc and rounding m err
 * by 2^-24 of 2^16 * |y| each, the fma by 2^-24 of 2^16 * |y + z|, the constant and the last
 * conversion by 1/2 each, all rounding to nearest by their own encoding; that is below 4 in all. So
 * if i mod 2^16 is at least 8, no multiple of 2^16 lies between i and (y + z) * 2^16, and i >> 16
 * is floor(y + z). If not, for one output in 8192 by chance, all pixels at hand are done anew:
 *
 * Integer. u = acc + 2^31 is unsigned; with the doubled multiplier 2M < 2^32, u * 2M = acc * 2M + M
 * * 2^32, so the upper half of u * 2M + 2^31 is ((acc * M + 2^30) >> 31) + M = h + M for every acc;
 * nothing overflows, because (2^32 - 1)(2^32 - 2) + 2^31 < 2^64. h < 0 is then (h + M) < M,
 * unsigned. The second rounding adds 2^(e-1) - (h < 0) and shifts by e, in 32 bits: with |acc| <
 * 2^30 also |h| < 2^30, and e <= 31 keeps the sum below 2^31. e = 0 adds nothing.
 *
 * Outputs beyond 16 bits saturate on the way to bytes, or, in float, are excluded by a bound on
 * |acc|; the clamp to a byte's range hides that, and |h| < 2^30 keeps the definition's addition of
 * the zero point from wrapping. Where the clamp starts at the zero point (RELU), acc < 0 gives at
 * most 0 with either sign of g and clamps alike: `relu` leaves the choice out.
 */
#ifndef NK_STAGE_AVX512_H
#define NK_STAGE_AVX512_H

#include "nk_simd.h"

#if NK_HAS_X86

#include <immintrin.h>

/* Each for |bias| and for the sum of products, so that |acc| < 2^30 */
#define NK_ACC_LIMIT (1 << 29)
#define NK_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define NK_DOUBT 8 /* twice the bound on the error */

enum { NK_SLOW, NK_INTEGER, NK_FLOAT };

/* Constants of 16 channels. */
typedef struct {
    __m512i multiplier, shift;
    __m512 factor, nudge; /* 2^16 times m and g */
    __m512 middle, up;    /* 2^16 times z + 1/2 and z + 1/2 + g, plus 4 */
    int paired, relu, form;
} nk_lanes16;

/* What all channels of a stage share. */
typedef struct {
    __m512i zero;            /* INT16 lanes */
    float middle;            /* 2^16 times z + 1/2, plus 4 */
    __m512i low, high, flip; /* bytes */
    int fast, open; /* open: the clamp is the INT8 range, which packing saturates to anyway */
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
    c.middle = (float)zero * 0x1p16f + 0x1p15f + NK_DOUBT / 2.0f;
    c.low = _mm512_set1_epi8((char)low);
    c.high = _mm512_set1_epi8((char)high);
    c.flip = _mm512_set1_epi8((char)down);
    c.fast = stage->rounding == NEUTRON_ROUNDING_DOUBLE && zero >= -128 && zero <= 127 &&
             low >= -128 && low <= high && high <= 127;
    c.open = is_signed && low == -128 && high == 127;
    return c;
}

/* Constants of channels [channel, channel + count) of a stage whose sums of products are at most
 * `most` in magnitude; `c` are the stage's own. */
static inline nk_lanes16 nk_lanes16_of(const nk_stage *stage, const nk_clamps *c, size_t channel,
                                       uint32_t count, int paired, int32_t most) {
    const __mmask16 mask = nk_first_lanes(count);
    const uint8_t *at = stage->table + 4 * channel;
    const __m512i none = _mm512_setzero_si512();
    const __m512i bias = _mm512_maskz_loadu_epi32(mask, at),
                  m = _mm512_maskz_loadu_epi32(mask, at + stage->column);
    const __m512i raw = _mm512_maskz_loadu_epi32(mask, at + 2 * stage->column);
    const __m512i exponent = _mm512_sub_epi32(none, _mm512_max_epi32(raw, _mm512_set1_epi32(-31)));
    const __m512i size = _mm512_abs_epi32(bias);
    nk_lanes16 lanes; /* every field is set below: clearing it first is not free */
    lanes.paired = paired;
    lanes.relu = stage->low >= stage->zero;
    const int fits = !_mm512_cmplt_epi32_mask(m, none) &&
                     !_mm512_cmplt_epi32_mask(exponent, none) &&
                     !_mm512_cmpge_epu32_mask(size, _mm512_set1_epi32(NK_ACC_LIMIT));
    /* 2^(16-e) / 2^31 * M, all but M's conversion exact */
    const __m512 power = _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(127 - 15), exponent), 23));
    const __m512 factor =
        _mm512_mul_round_ps(_mm512_cvt_roundepi32_ps(m, NK_NEAREST), power, NK_NEAREST);
    /* The zero point is at most 2^23 here; 2^18 cover the rounding of this bound itself and the
     * other constants added. */
    const __m512 reach =
        _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(size, _mm512_set1_epi32(most))), factor);
    const int short_enough =
        !_mm512_cmp_ps_mask(reach, _mm512_set1_ps(0x1p31f - 0x1p23f - 0x1p18f), _CMP_NLT_UQ);
    lanes.form = !fits ? NK_SLOW : short_enough ? NK_FLOAT : NK_INTEGER;
    lanes.multiplier = paired ? nk_pair_lanes(m) : m;
    lanes.shift = paired ? nk_pair_lanes(exponent) : exponent;
    lanes.factor =
        paired ? _mm512_castsi512_ps(nk_pair_lanes(_mm512_castps_si512(factor))) : factor;
    /* 2^16 * g = 2^(15-e) */
    const __m512 nudge = _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(127 + 15), lanes.shift), 23));
    lanes.nudge = _mm512_maskz_mov_ps(_mm512_cmpgt_epi32_mask(lanes.shift, none), nudge);
    lanes.middle = _mm512_set1_ps(c->middle);
    lanes.up = _mm512_add_ps(lanes.middle, lanes.nudge);
    return lanes;
}

/* The integer form. */
static inline __m512i nk_rescale16(const nk_lanes16 *k, __m512i acc) {
    const __m512i half = _mm512_set1_epi64((int64_t)1 << 31), one = _mm512_set1_epi32(1);
    const __m512i u = _mm512_xor_si512(acc, _mm512_set1_epi32(INT32_MIN)),
                  doubled = _mm512_add_epi32(k->multiplier, k->multiplier);
    const __m512i even = _mm512_add_epi64(_mm512_mul_epu32(u, doubled), half);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(u, 32), _mm512_srli_epi64(doubled, 32));
    __m512i h = _mm512_mask_shuffle_epi32(_mm512_add_epi64(odd, half), 0x5555, even, _MM_PERM_DDBB);
    const __mmask16 negative =
        _mm512_mask_cmplt_epu32_mask(_mm512_test_epi32_mask(k->shift, k->shift), h, k->multiplier);
    h = _mm512_sub_epi32(_mm512_mask_sub_epi32(h, negative, h, one), k->multiplier);
    const __m512i round = _mm512_srli_epi32(_mm512_sllv_epi32(one, k->shift), 1);
    return _mm512_srav_epi32(_mm512_add_epi32(h, round), k->shift);
}

/* The float form, in the upper 16 bits. */
static inline __attribute__((always_inline)) __m512i nk_rescale16_float(const nk_lanes16 *k,
                                                                        __m512i acc,
                                                                        const int relu) {
    /* g with the sign of acc: bits of the second where the third is set, else of the first */
    const __m512 nudge = _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        _mm512_castps_si512(k->nudge), acc, _mm512_set1_epi32(INT32_MIN), 0xD8));
    const __m512 rest = relu ? k->up : _mm512_add_round_ps(k->middle, nudge, NK_NEAREST);
    const __m512 y = _mm512_fmadd_round_ps(_mm512_cvt_roundepi32_ps(acc, NK_NEAREST), k->factor,
                                           rest, NK_NEAREST);
    return _mm512_cvt_roundps_epi32(y, NK_NEAREST);
}

/* Whether the float form may be wrong, from the least words of some registers. */
static inline __attribute__((always_inline)) int nk_least_doubtful(__m512i least) {
    return _mm512_mask_cmplt_epu16_mask(0x55555555, least, _mm512_set1_epi16(NK_DOUBT)) != 0;
}

/* The same of four registers. */
static inline __attribute__((always_inline)) int nk_doubtful(const __m512i v[4]) {
    return nk_least_doubtful(
        _mm512_min_epu16(_mm512_min_epu16(v[0], v[1]), _mm512_min_epu16(v[2], v[3])));
}

/* Words of two pixels taking turns, twice, to bytes: one pixel per 128 bits, channels in their
 * natural order. The zero point is in them already. */
static inline __attribute__((always_inline)) __m512i nk_bytes4(const nk_clamps *c, __m512i front,
                                                               __m512i back, const int paired,
                                                               const int open) {
    /* Within 128 bits, the bytes of each pixel together, and of those the ones of each half of the
     * pairs. */
    const __m128i together =
        paired ? _mm_setr_epi8(0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15)
               : _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m512i paired_words =
        _mm512_set_epi16(31, 23, 15, 7, 30, 22, 14, 6, 29, 21, 13, 5, 28, 20, 12, 4, 27, 19, 11, 3,
                         26, 18, 10, 2, 25, 17, 9, 1, 24, 16, 8, 0);
    const __m512i natural_words =
        _mm512_set_epi16(31, 30, 23, 22, 15, 14, 7, 6, 29, 28, 21, 20, 13, 12, 5, 4, 27, 26, 19, 18,
                         11, 10, 3, 2, 25, 24, 17, 16, 9, 8, 1, 0);
    __m512i bytes = _mm512_packs_epi16(front, back);
    if (!open)
        bytes = _mm512_xor_si512(_mm512_min_epi8(_mm512_max_epi8(bytes, c->low), c->high), c->flip);
    bytes = _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(together));
    return _mm512_permutexvar_epi16(paired ? paired_words : natural_words, bytes);
}

/* Upper words of four registers, of natural or paired lanes, to bytes in their order, clamped to
 * INT8. */
static inline __attribute__((always_inline)) __m512i nk_upper_bytes(const __m512i v[4],
                                                                    const int paired) {
    const __m512i paired_words =
        _mm512_set_epi16(63, 59, 55, 51, 47, 43, 39, 35, 61, 57, 53, 49, 45, 41, 37, 33, 31, 27, 23,
                         19, 15, 11, 7, 3, 29, 25, 21, 17, 13, 9, 5, 1);
    const __m512i natural_words =
        _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                         25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    const __m512i words = paired ? paired_words : natural_words;
    return _mm512_permutexvar_epi64(
        _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
        _mm512_packs_epi16(_mm512_permutex2var_epi16(v[0], words, v[1]),
                           _mm512_permutex2var_epi16(v[2], words, v[3])));
}

/* Two pixels' words: one's where they are, the other's moved down from the upper halves. */
static inline __attribute__((always_inline)) __m512i nk_upper_words(__m512i even, __m512i odd) {
    return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(even, 16), odd);
}

/* Saturate to 16 bits, then as above, with the zero point. */
static inline __m512i nk_turn_words(const nk_clamps *c, __m512i even, __m512i odd) {
    const __m512i low = _mm512_set1_epi32(INT16_MIN), high = _mm512_set1_epi32(INT16_MAX);
    const __m512i a = _mm512_min_epi32(_mm512_max_epi32(even, low), high),
                  b = _mm512_min_epi32(_mm512_max_epi32(odd, low), high);
    return _mm512_adds_epi16(_mm512_mask_blend_epi16(0xAAAAAAAA, a, _mm512_slli_epi32(b, 16)),
                             c->zero);
}

static __attribute__((noinline)) __m512i nk_stage16_exact(const nk_clamps *c, const nk_lanes16 *k,
                                                          const int32_t *acc, size_t stride,
                                                          uint32_t left) {
    __m512i v[4];
    for (uint32_t j = 0; j < 4; ++j)
        v[j] = nk_rescale16(k, _mm512_loadu_si512(acc + (j < left ? j : 0) * stride));
    const __m512i front = nk_turn_words(c, v[0], v[1]), back = nk_turn_words(c, v[2], v[3]);
    return k->paired ? nk_bytes4(c, front, back, 1, 0) : nk_bytes4(c, front, back, 0, 0);
}

/* Bytes of the pixels `acc`, `acc + stride` and so on, up to `left` of them. */
static inline __attribute__((always_inline)) __m512i
nk_stage16_four(const nk_clamps *c, const nk_lanes16 *k, const int32_t *acc, size_t stride,
                uint32_t left, const int paired, const int relu, const int open) {
    __m512i v[4];
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j)
        v[j] = nk_rescale16_float(k, _mm512_loadu_si512(acc + (j < left ? j : 0) * stride), relu);
    if (__builtin_expect(nk_doubtful(v), 0)) return nk_stage16_exact(c, k, acc, stride, left);
    return nk_bytes4(c, nk_upper_words(v[0], v[1]), nk_upper_words(v[2], v[3]), paired, open);
}

static inline __attribute__((always_inline)) void nk_store4(uint8_t *to, size_t pixel,
                                                            uint32_t count, __m512i bytes) {
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_castsi512_si128(bytes));
    if (count > 1)
        _mm_storeu_si128((__m128i *)(void *)(to + pixel), _mm512_extracti32x4_epi32(bytes, 1));
    if (count > 2)
        _mm_storeu_si128((__m128i *)(void *)(to + 2 * pixel), _mm512_extracti32x4_epi32(bytes, 2));
    if (count > 3)
        _mm_storeu_si128((__m128i *)(void *)(to + 3 * pixel), _mm512_extracti32x4_epi32(bytes, 3));
}

/* `count` pixels of accumulators, `stride` lanes apart, to bytes `pixel` apart. */
static inline __attribute__((always_inline)) void nk_stage16_loop(
    const nk_clamps *clamps, const nk_lanes16 *lanes, const int32_t *acc, size_t stride,
    uint32_t count, uint8_t *to, size_t pixel, const int paired, const int relu, const int open) {
    const nk_clamps c = *clamps; /* stores to bytes cannot reach these: they stay in registers */
    const nk_lanes16 k = *lanes;
    for (; count >= 4; count -= 4, acc += 4 * stride, to += 4 * pixel)
        nk_store4(to, pixel, 4, nk_stage16_four(&c, &k, acc, stride, 4, paired, relu, open));
    if (count)
        nk_store4(to, pixel, count,
                  nk_stage16_four(&c, &k, acc, stride, count, paired, relu, open));
}

/* Pixels where only `channels` of the 16 exist, or that take the integer form. */
static inline void nk_stage16_rest(const nk_clamps *c, const nk_lanes16 *k, const int32_t *acc,
                                   size_t stride, uint32_t count, uint8_t *to, size_t pixel,
                                   uint32_t channels, const int paired) {
    for (uint32_t i = 0; i < count; i += 4, acc += 4 * stride) {
        uint8_t bytes[64];
        const __m512i four = k->form == NK_FLOAT
                                 ? nk_stage16_four(c, k, acc, stride, count - i, paired, 0, 0)
                                 : nk_stage16_exact(c, k, acc, stride, count - i);
        _mm512_storeu_si512(bytes, four);
        for (uint32_t j = 0; j < 4 && i + j < count; ++j, to += pixel) {
            if (channels == 8)
                memcpy(to, bytes + 16 * j,
                       8); /* lengths the compiler knows: an odd group, a whole pair */
            else if (channels == 16) memcpy(to, bytes + 16 * j, 16);
            else memcpy(to, bytes + 16 * j, channels);
        }
    }
}

/* The definition, for what the fast forms exclude. */
static inline void nk_stage16_slow(const nk_stage *stage, int paired, size_t channel,
                                   const int32_t *acc, size_t stride, uint32_t count, uint8_t *to,
                                   size_t pixel, uint32_t channels) {
    for (uint32_t i = 0; i < count; ++i, acc += stride, to += pixel)
        for (uint32_t c = 0; c < channels; ++c)
            to[c] = nk_stage_output(stage, channel + c,
                                    acc[!paired ? c
                                        : c < 8 ? 2 * c
                                                : 2 * c - 15]);
}

/* `count` pixels of accumulators, `stride` lanes apart, for `channels` <= 16 channels from
 * `channel` on; `paired` as in the constants. */
static inline __attribute__((always_inline)) void nk_stage16(
    const nk_stage *stage, const nk_clamps *c, const nk_lanes16 *k, size_t channel,
    uint32_t channels, const int32_t *acc, size_t stride, uint32_t count, uint8_t *to, size_t pixel,
    const int paired) {
    if (!c->fast || k->form == NK_SLOW) {
        nk_stage16_slow(stage, paired, channel, acc, stride, count, to, pixel, channels);
        return;
    }
    if (channels != 16 || k->form != NK_FLOAT)
        nk_stage16_rest(c, k, acc, stride, count, to, pixel, channels, paired);
    else if (k->relu && c->open) nk_stage16_loop(c, k, acc, stride, count, to, pixel, paired, 1, 1);
    else if (c->open) nk_stage16_loop(c, k, acc, stride, count, to, pixel, paired, 0, 1);
    else if (k->relu) nk_stage16_loop(c, k, acc, stride, count, to, pixel, paired, 1, 0);
    else nk_stage16_loop(c, k, acc, stride, count, to, pixel, paired, 0, 0);
    if (!stage->lut) return;
    for (uint32_t i = 0; i < count; ++i, to += pixel)
        for (uint32_t b = 0; b < channels; ++b) to[b] = stage->lut[to[b]];
}

#endif
#endif
