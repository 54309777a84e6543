/* Logistic and tanh on 16-bit fixed point, as LiteRT's integer LSTM computes them
 * (docs/numerics.md, LSTM). A format has `bits` integer bits, a sign and 15 - bits fractional bits;
 * results are Q0.15.
 */
#ifndef NK_FIXED16_H
#define NK_FIXED16_H

#include "nk_math.h"

static inline int32_t nk_sat16(int32_t v) { return nk_clamp(v, INT16_MIN, INT16_MAX); }

/* Product of two fractions, halves away from zero. */
static inline int32_t nk_mul16(int32_t a, int32_t b) {
    if (a == INT16_MIN && b == INT16_MIN) return INT16_MAX;
    const int32_t product = a * b;
    return (product + (product >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15);
}

/* exp(a) of -1/4 <= a < 0 in Q0.15: a polynomial around -1/8. */
static inline int32_t nk_exp16_quarter(int32_t a) {
    const int32_t term = 28918, third = 10923; /* exp(-1/8), 1/3 */
    const int32_t x = a + 4096, x2 = nk_mul16(x, x), x3 = nk_mul16(x2, x), x4 = nk_mul16(x2, x2);
    const int32_t rest = nk_rdp(nk_mul16(nk_rdp(x4, 2) + x3, third) + x2, 1);
    return nk_sat16(term + nk_mul16(term, x + rest));
}

/* exp(a) of a <= 0: a multiple of 1/4 by factors, the rest by the polynomial. */
static inline int32_t nk_exp16(int32_t a, int32_t bits) {
    static const int16_t factors[] = {25520, 19875, 12055, 4435,
                                      600,   11,    0}; /* exp(-2^k), k from -2 */
    if (a == 0) return INT16_MAX;
    const int32_t fraction = 15 - bits, quarter = 1 << (fraction - 2);
    if (bits > 5 && a < -(1 << (fraction + 5))) return 0;
    const int32_t rest = (a & (quarter - 1)) - quarter, steps = rest - a;
    int32_t result = nk_exp16_quarter(nk_sat16(rest * (1 << bits)));
    for (int32_t k = -2; k <= 4; k++) {
        if (bits > k && steps >> (fraction + k) & 1) result = nk_mul16(result, factors[k + 2]);
    }
    return result;
}

/* 1 / (1 + e) of 0 <= e <= 1 in Q2.13, by three steps of Newton's method. */
static inline int32_t nk_reciprocal16(int32_t e) {
    const int32_t half = (e + INT16_MAX + 1) / 2; /* (1 + e) / 2 */
    int32_t x = 23130 + nk_mul16(half, -15420);   /* 48/17 - 32/17 * half */
    for (int step = 0; step < 3; step++) {
        x += nk_sat16(4 * nk_mul16(x, (1 << 13) - nk_mul16(half, x)));
    }
    return x;
}

/* Logistic of a Q3.12 value. */
static inline int32_t nk_logistic16(int32_t a) {
    if (a == 0) return 1 << 14;
    const int32_t positive = nk_sat16(2 * nk_reciprocal16(nk_exp16(a > 0 ? -a : a, 3)));
    return a > 0 ? positive : INT16_MAX - positive;
}

/* Hyperbolic tangent of a value with `bits` integer bits. */
static inline int32_t nk_tanh16(int32_t a, int32_t bits) {
    if (a == 0) return 0;
    const int32_t e = nk_exp16(a > 0 ? -a : a, bits + 1);
    const int32_t positive = nk_sat16(4 * (nk_reciprocal16(e) - (1 << 13)));
    return a > 0 ? positive : -positive;
}

#endif
