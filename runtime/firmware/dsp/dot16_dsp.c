/* nk_wide_dot with SMLAD: inputs are put into pairs once per block of N and meet the weights of all
 * M units. At most 64 products of 23 bits are summed in 32, as in the portable loop. */
#include "nk_wide.h"

#if NK_HAS_DSP

static void load_pairs(const uint8_t *pixel, uint32_t count, uint32_t length, int16x2_t *pairs) {
    uint8_t some[2 * NK_MAX_LENGTH];
    if (count < length) {
        memset(some, 0, sizeof some);
        pixel = memcpy(some, pixel, 2 * (size_t)count);
    }
    for (uint32_t n = 0; n < length; n += 4, pixel += 8, pairs += 2) {
        const uint32_t low = nk_word(pixel), high = nk_word(pixel + 4);
        pairs[0] = nk_even_halves(low, high);
        pairs[1] = nk_odd_halves(low, high);
    }
}

/* N = 8, that of imxrt700: the inputs stay in registers, which inside the caller there are too few
 * of. */
__attribute__((noinline)) static void multiply_8(const int16x2_t *pairs, const int8_t *weights,
                                                 uint32_t units, int64_t *acc) {
    const int16x2_t x0 = pairs[0], x1 = pairs[1], x2 = pairs[2], x3 = pairs[3];
    for (const int64_t *end = acc + units; acc < end; ++acc, weights += 8) {
        const uint32_t low = nk_word(weights), high = nk_word(weights + 4);
        int32_t sum = __smuad(x0, nk_even_signed(low));
        sum = __smlad(x1, nk_odd_signed(low), sum);
        sum = __smlad(x2, nk_even_signed(high), sum);
        *acc += __smlad(x3, nk_odd_signed(high), sum);
    }
}

static void multiply(const int16x2_t *pairs, const int8_t *weights, uint32_t units, uint32_t length,
                     int64_t *acc) {
    for (uint32_t m = 0; m < units; ++m) {
        int32_t sum = 0;
        for (uint32_t n = 0; n < length; n += 4, weights += 4) {
            const uint32_t word = nk_word(weights);
            sum = __smlad(pairs[n / 2], nk_even_signed(word), sum);
            sum = __smlad(pairs[n / 2 + 1], nk_odd_signed(word), sum);
        }
        acc[m] += sum;
    }
}

void nk_wide_dot(const nk_call *call, const uint8_t *pixel, uint32_t inputs, const int8_t *weights,
                 int64_t *acc) {
    const uint32_t units = call->units, length = call->length;
    if (length % 4) {
        nk_wide_dot_portable(call, pixel, inputs, weights, acc);
        return;
    }
    for (uint32_t at = 0; at < inputs; at += length, weights += units * length) {
        int16x2_t pairs[NK_MAX_LENGTH / 2];
        const uint32_t count = inputs - at < length ? inputs - at : length;
        load_pairs(pixel + 2 * (size_t)at, count, length, pairs);
        if (length == 8) multiply_8(pairs, weights, units, acc);
        else multiply(pairs, weights, units, length, acc);
    }
}

#endif
