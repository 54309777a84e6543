/* nk_wide_taps with SMLABB and its kin: four channels at a time, whose sums stay in registers over
 * a row of the window. */
#include "nk_wide.h"

#if NK_HAS_DSP

void nk_wide_taps(const nk_wide_row *row, const uint8_t *pixel, const int8_t *weights,
                  uint32_t count, int64_t *acc) {
    for (; count >= 4; count -= 4, pixel += 8, weights += 4, acc += 4) {
        int32_t sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
        const uint8_t *x = pixel;
        const int8_t *w = weights;
        for (uint32_t taps = row->taps; taps; --taps, x += row->step, w += row->units) {
            const int32_t first = (int32_t)nk_word(x), second = (int32_t)nk_word(x + 4);
            const uint32_t word = nk_word(w);
            const int16x2_t even = nk_even_signed(word), odd = nk_odd_signed(word);
            sum0 = __smlabb(first, even, sum0);
            sum1 = __smlatb(first, odd, sum1);
            sum2 = __smlabt(second, even, sum2);
            sum3 = __smlatt(second, odd, sum3);
        }
        acc[0] += sum0, acc[1] += sum1, acc[2] += sum2, acc[3] += sum3;
    }
    if (count) nk_wide_taps_portable(row, pixel, weights, count, acc);
}

#endif
