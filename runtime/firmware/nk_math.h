/* Exact integer arithmetic shared by kernels (docs/numerics.md). All shifts of negative values are
 * arithmetic. */
#ifndef NK_MATH_H
#define NK_MATH_H

#include <stdint.h>

#include "generated/microcode.h"

static inline int32_t nk_min(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t nk_max(int32_t a, int32_t b) { return a > b ? a : b; }
static inline int32_t nk_clamp(int32_t v, int32_t lo, int32_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}
/* Wrapping int32 arithmetic, which the reference relies on and C leaves undefined for signed types.
 */
static inline int32_t nk_wrap_add(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
static inline int32_t nk_shl(int32_t a, int32_t s) { return (int32_t)((uint32_t)a << s); }

/* Rounding doubling high multiply; INT32_MIN * INT32_MIN saturates. */
static inline int32_t nk_srdhm(int32_t a, int32_t b) {
    int64_t h = ((int64_t)a * b + (1 << 30)) >> 31;
    return h > INT32_MAX ? INT32_MAX : (int32_t)h;
}

/* Rounding shift right, half away from zero; the mask form does not overflow. e in 0..31. */
static inline int32_t nk_rdp(int32_t x, int32_t e) {
    int32_t mask = (int32_t)(((uint32_t)1 << e) - 1u);
    int32_t rem = x & mask;
    int32_t threshold = (mask >> 1) + (x < 0);
    return (e == 31 ? (x < 0 ? -1 : 0) : (x >> e)) + (rem > threshold);
}

/* MultiplyByQuantizedMultiplier with double rounding; shift in -31..30. */
static inline int32_t nk_mbqm(int32_t x, int32_t multiplier, int32_t shift) {
    int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
    return nk_rdp(nk_srdhm(nk_shl(x, left), multiplier), right);
}

static inline int32_t nk_saturate(int64_t v) {
    return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int32_t)v;
}

/* (acc * M + 2^(s-1)) >> s with a 31-bit M; s in 1..62. */
static inline int32_t nk_exact31(int32_t acc, int32_t multiplier, int32_t s) {
    return nk_saturate(((int64_t)acc * multiplier + ((int64_t)1 << (s - 1))) >> s);
}

/* round(double(acc) * m), halves away from zero, for m = mantissa * 2^-s with a mantissa of 53
 * bits: the product of 84 bits is rounded to 53, ties to even, as an IEEE multiplication does, and
 * then to an integer. s in 37..127. */
static inline int32_t nk_exact53(int32_t acc, uint64_t mantissa, int32_t s) {
    const uint32_t magnitude = acc < 0 ? 0u - (uint32_t)acc : (uint32_t)acc;
    const uint64_t low = (uint64_t)magnitude * (uint32_t)mantissa;
    const uint64_t top = (uint64_t)magnitude * (mantissa >> 32) + (low >> 32);
    const uint32_t bottom = (uint32_t)low;
    int32_t dropped = 0; /* bits of the product below its 53 highest; at most 31 */
    while (top >> (21 + dropped)) ++dropped;
    uint64_t kept = top << (32 - dropped) | bottom >> dropped;
    if (dropped) {
        const uint32_t rest = bottom & ((1u << dropped) - 1u), half = 1u << (dropped - 1);
        kept += rest > half || (rest == half && (kept & 1u));
    }
    const int32_t right = s - dropped;
    const int64_t whole =
        right > 55 ? 0 : (int64_t)((kept + ((uint64_t)1 << (right - 1))) >> right);
    return nk_saturate(acc < 0 ? -whole : whole);
}

/* (acc * M + 2^(s-1)) >> s in 64 bits, wrapping, with an M of 16 bits; s in 1..62. */
static inline int32_t nk_single(int64_t acc, int32_t multiplier, int32_t s) {
    const uint64_t product =
        (uint64_t)acc * (uint64_t)(int64_t)multiplier + ((uint64_t)1 << (s - 1));
    return (int32_t)(uint32_t)(uint64_t)((int64_t)product >> s);
}

static inline int32_t nk_bits64(uint64_t value) {
    int32_t bits = 0;
    for (int32_t step = 32; step; step >>= 1)
        if (value >> step) {
            bits += step;
            value >>= step;
        }
    return bits + (value != 0);
}

/* nk_exact53 for accumulators of 64 bits. Up to 2^53 they are doubles without rounding, which the
 * compiler sees to. s in 1..127. */
static inline int32_t nk_exact53_wide(int64_t acc, uint64_t mantissa, int32_t s) {
    const uint64_t magnitude = acc < 0 ? 0u - (uint64_t)acc : (uint64_t)acc;
    const uint64_t a0 = (uint32_t)magnitude, a1 = magnitude >> 32;
    const uint64_t b0 = (uint32_t)mantissa, b1 = mantissa >> 32;
    const uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
    const uint64_t middle = (p00 >> 32) + (uint32_t)p01 + (uint32_t)p10;
    const uint64_t low = middle << 32 | (uint32_t)p00;
    const uint64_t high = a1 * b1 + (p01 >> 32) + (p10 >> 32) + (middle >> 32);
    const int32_t bits = high ? 64 + nk_bits64(high) : nk_bits64(low);
    const int32_t dropped = bits > 53 ? bits - 53 : 0; /* at most 64 + 53 - 53 */
    uint64_t kept = low;
    if (dropped) {
        kept = dropped == 64 ? high : high << (64 - dropped) | low >> dropped;
        const uint64_t half = (uint64_t)1 << (dropped - 1);
        const uint64_t rest = dropped == 64 ? low : low & (2 * half - 1);
        kept += rest > half || (rest == half && (kept & 1u));
    }
    const int32_t right = s - dropped;
    int64_t whole;
    if (right > 55) whole = 0;
    else if (right < 1) whole = kept ? INT32_MAX : 0; /* no smaller than 2^52 */
    else whole = (int64_t)((kept + ((uint64_t)1 << (right - 1))) >> right);
    return nk_saturate(acc < 0 ? -whole : whole);
}

/* Per-channel requantization table in the weights: bias[c], multiplier[c], shift[c], each padded to
 * the group. In NEUTRON_ROUNDING_EXACT53 the multiplier is the mantissa's upper 31 bits and the
 * shift word s | lower 22 bits << 8. */
/* A table's shift made safe for the mode, once per channel: a corrupt table gives wrong numbers,
 * never undefined ones. */
static inline int32_t nk_safe_shift(uint8_t rounding, int32_t shift) {
    switch (rounding) {
    case NEUTRON_ROUNDING_DOUBLE: return nk_clamp(shift, -31, 30);
    case NEUTRON_ROUNDING_EXACT31: return nk_clamp(shift, 1, 62);
    default:
        return (int32_t)(((uint32_t)shift & 0x3FFFFF00u) |
                         (uint32_t)nk_clamp(shift & 0xFF, 37, 127));
    }
}

static inline int32_t nk_rescale(uint8_t rounding, int32_t acc, int32_t multiplier, int32_t shift) {
    switch (rounding) {
    case NEUTRON_ROUNDING_DOUBLE: return nk_mbqm(acc, multiplier, shift);
    case NEUTRON_ROUNDING_EXACT31: return nk_exact31(acc, multiplier, shift);
    default:
        return nk_exact53(
            acc, (uint64_t)((uint32_t)multiplier & 0x7FFFFFFFu) << 22 | (uint32_t)shift >> 8,
            shift & 0xFF);
    }
}

#endif
