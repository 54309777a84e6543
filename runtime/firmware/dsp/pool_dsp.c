/* max_pool2d and avg_pool2d of bytes, four channels at a time. */
#include "loops.h"
#include "pool_pixels.h"

#if NK_HAS_DSP

/* The larger of each pair of bytes; SEL takes those whose difference set its flag. */
static uint32_t larger(uint32_t a, uint32_t b, int32_t flip) {
    uint32_t best;
    if (flip) __asm__("ssub8 %0, %1, %2\nsel %0, %1, %2" : "=&r"(best) : "r"(a), "r"(b));
    else __asm__("usub8 %0, %1, %2\nsel %0, %1, %2" : "=&r"(best) : "r"(a), "r"(b));
    return best;
}

static uint32_t largest(const nk_pool_window *w, uint32_t channel, int32_t flip) {
    uint32_t best = flip ? 0x80808080u : 0;
    for (int32_t iy = w->rows.first; iy < w->rows.last; ++iy) {
        const uint8_t *from = nk_pool_row(w, iy) + channel;
        for (int32_t ix = w->columns.first; ix < w->columns.last; ++ix, from += w->in->pixel)
            best = larger(nk_word(from), best, flip);
    }
    return best;
}

static void pixel_of_largest(const nk_stage *stage, const nk_pool_window *w, uint8_t *to) {
    const int32_t flip = nk_flip(w->in);
    const bool plain = nk_pool_passes(stage, flip);
    for (uint32_t c = 0; c < w->in->channels; c += 4, to += 4) {
        uint32_t word = largest(w, c, flip);
        if (plain) memcpy(to, &word, sizeof word);
        else
            for (uint32_t m = 0; m < 4; ++m, word >>= 8)
                to[m] = nk_finish(stage, nk_value((uint8_t)word, flip));
    }
}

/* Sums of channels 0 and 2, 1 and 3. */
static void sums_of(const nk_pool_window *w, uint32_t channel, int32_t flip, uint32_t sums[2]) {
    int16x2_t even = 0, odd = 0;
    for (int32_t iy = w->rows.first; iy < w->rows.last; ++iy) {
        const uint8_t *from = nk_pool_row(w, iy) + channel;
        for (int32_t ix = w->columns.first; ix < w->columns.last; ++ix, from += w->in->pixel) {
            const uint32_t word = nk_word(from);
            even = __sadd16(even, flip ? nk_even_signed(word) : nk_even_unsigned(word));
            odd = __sadd16(odd, flip ? nk_odd_signed(word) : nk_odd_unsigned(word));
        }
    }
    sums[0] = (uint32_t)even, sums[1] = (uint32_t)odd;
}

static void pixel_of_means(const nk_stage *stage, const nk_pool_window *w, uint8_t *to) {
    for (uint32_t c = 0; c < w->in->channels; c += 4, to += 4) {
        uint32_t sums[2];
        sums_of(w, c, nk_flip(w->in), sums);
        for (uint32_t m = 0; m < 4; ++m)
            to[m] = nk_finish(stage, nk_pool_mean((int16_t)(sums[m & 1] >> (m & 2) * 8), w->count));
    }
}

static bool by_fours(const nk_call *call) {
    return call->operands[NK_MAX_POOL2D_INPUT].channels % 4 == 0;
}

int nk_dsp_max_pool2d(const nk_call *call, const nk_stage *stage) {
    return by_fours(call) && nk_pool_pixels(call, stage, pixel_of_largest);
}

int nk_dsp_avg_pool2d(const nk_call *call, const nk_stage *stage) {
    return by_fours(call) && nk_pool_pixels(call, stage, pixel_of_means);
}

#endif
