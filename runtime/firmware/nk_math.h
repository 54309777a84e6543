/* Exact integer arithmetic shared by kernels: numerics-a §0 and §4. All shifts of negative values are arithmetic. */
#ifndef NK_MATH_H
#define NK_MATH_H

#include <stdint.h>

#include "generated/microcode.h"

static inline int32_t nk_min(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t nk_max(int32_t a, int32_t b) { return a > b ? a : b; }
static inline int32_t nk_clamp(int32_t v, int32_t lo, int32_t hi) { return v < lo ? lo : v > hi ? hi : v; }
/* Wrapping int32 arithmetic, which the reference relies on and C leaves undefined for signed types. */
static inline int32_t nk_wrap_add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
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

/* The same with M = high * 2^15 + low (46 bits), split so that every product fits 64 bits; s in 16..77. The 15 bits
 * that the first shift drops cannot carry: what is added after it is a multiple of 2^15. */
static inline int32_t nk_exact46(int32_t acc, int32_t high, int32_t low, int32_t s) {
    int64_t product = (int64_t)acc * high + (((int64_t)acc * low) >> 15);
    return nk_saturate((product + ((int64_t)1 << (s - 16))) >> (s - 15));
}

/* Per-channel requantization table in the weights: bias[c], multiplier[c], shift[c], each padded to the group. In
 * NEUTRON_ROUNDING_EXACT46 the shift word is shift | low << 16. */
/* A table's shift made safe for the mode, once per channel: a corrupt table gives wrong numbers, never undefined ones. */
static inline int32_t nk_safe_shift(uint8_t rounding, int32_t shift) {
    switch (rounding) {
    case NEUTRON_ROUNDING_DOUBLE: return nk_clamp(shift, -31, 30);
    case NEUTRON_ROUNDING_EXACT31: return nk_clamp(shift, 1, 62);
    default: return (int32_t)(((uint32_t)shift & 0x7FFF0000u) | (uint32_t)nk_clamp(shift & 0xFFFF, 16, 77));
    }
}

static inline int32_t nk_rescale(uint8_t rounding, int32_t acc, int32_t multiplier, int32_t shift) {
    switch (rounding) {
    case NEUTRON_ROUNDING_DOUBLE: return nk_mbqm(acc, multiplier, shift);
    case NEUTRON_ROUNDING_EXACT31: return nk_exact31(acc, multiplier, shift);
    default: return nk_exact46(acc, multiplier, (int32_t)((uint32_t)shift >> 16), shift & 0xFFFF);
    }
}

#endif
