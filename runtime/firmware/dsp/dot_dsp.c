/* nk_dot with SMLAD. Inputs become pairs of 16-bit numbers once per block of N and meet the weights
 * of all M units. Sums wrap, so their order does not matter and the result is the portable loop's.
 */
#include "nk_window.h"

#if NK_HAS_DSP

/* Values of N inputs as pairs, and their sum. */
static int32_t load_pairs(const uint8_t *pixel, int32_t flip, uint32_t length, int16x2_t *pairs) {
    int32_t sum = 0;
    for (uint32_t n = 0; n < length; n += 4, pairs += 2) {
        const uint32_t word = nk_word(pixel + n);
        pairs[0] = flip ? nk_even_signed(word) : nk_even_unsigned(word);
        pairs[1] = flip ? nk_odd_signed(word) : nk_odd_unsigned(word);
        sum = __smlad(pairs[1], nk_twice(1), __smlad(pairs[0], nk_twice(1), sum));
    }
    return sum;
}

/* The same for a block that is not all input: absent pixels, and lanes beyond the last channel. */
static int32_t make_pairs(const uint8_t *pixel, int32_t flip, int32_t absent, uint32_t count,
                          uint32_t length, int16x2_t *pairs) {
    int32_t lanes[NK_MAX_LENGTH];
    const int32_t sum = nk_load_lanes(pixel, flip, absent, count, length, lanes);
    for (uint32_t n = 0; n < length; n += 2) {
        const int32_t *from = lanes + n / 4 * 4 + n / 2 % 2;
        pairs[n / 2] = (int16x2_t)(((uint32_t)from[0] & 0xFFFFu) | (uint32_t)from[2] << 16);
    }
    return sum;
}

/* N = 8, that of imxrt700: the inputs stay in registers, which inside the caller there are too few
 * of. */
__attribute__((noinline)) static void multiply_8(const int16x2_t *pairs, const int8_t *weights,
                                                 uint32_t units, uint32_t *acc) {
    const int16x2_t x0 = pairs[0], x1 = pairs[1], x2 = pairs[2], x3 = pairs[3];
    for (const uint32_t *end = acc + units; acc < end; ++acc, weights += 8) {
        const uint32_t low = nk_word(weights), high = nk_word(weights + 4);
        int32_t sum = (int32_t)*acc;
        sum = __smlad(x0, nk_even_signed(low), sum);
        sum = __smlad(x1, nk_odd_signed(low), sum);
        sum = __smlad(x2, nk_even_signed(high), sum);
        sum = __smlad(x3, nk_odd_signed(high), sum);
        *acc = (uint32_t)sum;
    }
}

static void multiply(const int16x2_t *pairs, const int8_t *weights, uint32_t units, uint32_t length,
                     uint32_t *acc) {
    for (uint32_t m = 0; m < units; ++m) {
        int32_t sum = (int32_t)acc[m];
        for (uint32_t n = 0; n < length; n += 4, weights += 4) {
            const uint32_t word = nk_word(weights);
            sum = __smlad(pairs[n / 2], nk_even_signed(word), sum);
            sum = __smlad(pairs[n / 2 + 1], nk_odd_signed(word), sum);
        }
        acc[m] = (uint32_t)sum;
    }
}

uint32_t nk_dot(const nk_call *call, const uint8_t *pixel, int32_t flip, int32_t absent,
                uint32_t inputs, const int8_t *weights, uint32_t *acc) {
    const uint32_t units = call->units, length = call->length;
    if (length % 4) return nk_dot_portable(call, pixel, flip, absent, inputs, weights, acc);
    uint32_t sum = 0;
    for (uint32_t at = 0; at < inputs; at += length, weights += units * length) {
        int16x2_t pairs[NK_MAX_LENGTH / 2];
        const uint32_t count = inputs - at < length ? inputs - at : length;
        const uint8_t *from = pixel ? pixel + at : NULL;
        sum += (uint32_t)(from && count == length
                              ? load_pairs(from, flip, length, pairs)
                              : make_pairs(from, flip, absent, count, length, pairs));
        if (length == 8) multiply_8(pairs, weights, units, acc);
        else multiply(pairs, weights, units, length, acc);
    }
    return sum;
}

#endif
