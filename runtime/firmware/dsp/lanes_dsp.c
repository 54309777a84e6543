/* nk_lanes with SMLABB and SMLATT: four channels of one tap at a time, each its own sum. */
#include "nk_window.h"

#if NK_HAS_DSP

void nk_lanes(const uint8_t *pixel, int32_t flip, int32_t absent, uint32_t count,
              const int8_t *weights, int32_t weights_zero, uint32_t *acc) {
    const int16x2_t missing = nk_twice(absent), zero = nk_twice(weights_zero);
    uint32_t m = 0;
    for (; m + 4 <= count; m += 4, acc += 4) {
        int16x2_t even = missing, odd = missing;
        if (pixel) {
            const uint32_t word = nk_word(pixel + m);
            even = flip ? nk_even_signed(word) : nk_even_unsigned(word);
            odd = flip ? nk_odd_signed(word) : nk_odd_unsigned(word);
        }
        const uint32_t word = nk_word(weights + m);
        const int16x2_t low = __ssub16(nk_even_signed(word), zero),
                        high = __ssub16(nk_odd_signed(word), zero);
        acc[0] = (uint32_t)__smlabb(even, low, (int32_t)acc[0]);
        acc[1] = (uint32_t)__smlabb(odd, high, (int32_t)acc[1]);
        acc[2] = (uint32_t)__smlatt(even, low, (int32_t)acc[2]);
        acc[3] = (uint32_t)__smlatt(odd, high, (int32_t)acc[3]);
    }
    nk_lanes_portable(pixel ? pixel + m : NULL, flip, absent, count - m, weights + m, weights_zero,
                      acc);
}

#endif
