/* max_pool2d of bytes, sixteen channels at a time, and avg_pool2d, eight at a time. */
#include "dsp/pool_pixels.h"
#include "loops.h"

#if NK_HAS_HELIUM

static void pixel_of_largest(const nk_stage *stage, const nk_pool_window *w, uint8_t *to) {
    const int32_t flip = nk_flip(w->in);
    const bool plain = nk_pool_passes(stage, flip);
    const uint32_t channels = w->in->channels;
    for (uint32_t c = 0; c < channels; c += 16) {
        const mve_pred16_t here = vctp8q(channels - c);
        uint8x16_t best = vdupq_n_u8(flip ? 0x80 : 0);
        for (int32_t iy = w->rows.first; iy < w->rows.last; ++iy) {
            const uint8_t *from = nk_pool_row(w, iy) + c;
            for (int32_t ix = w->columns.first; ix < w->columns.last; ++ix, from += w->in->pixel) {
                const uint8x16_t bytes = vld1q_z_u8(from, here);
                best = flip ? vreinterpretq_u8_s8(
                                  vmaxq_s8(vreinterpretq_s8_u8(best), vreinterpretq_s8_u8(bytes)))
                            : vmaxq_u8(best, bytes);
            }
        }
        vst1q_p_u8(to + c, best, here);
    }
    for (uint32_t c = 0; c < channels && !plain; ++c)
        to[c] = nk_finish(stage, nk_value(to[c], flip));
}

static void pixel_of_means(const nk_stage *stage, const nk_pool_window *w, uint8_t *to) {
    const bool is_signed = nk_flip(w->in) != 0;
    const uint32_t channels = w->in->channels;
    for (uint32_t c = 0; c < channels; c += 8) {
        const mve_pred16_t here = vctp16q(channels - c);
        int16x8_t sums = vdupq_n_s16(0);
        for (int32_t iy = w->rows.first; iy < w->rows.last; ++iy) {
            const uint8_t *from = nk_pool_row(w, iy) + c;
            for (int32_t ix = w->columns.first; ix < w->columns.last; ++ix, from += w->in->pixel)
                sums = vaddq_s16(sums, is_signed ? vldrbq_z_s16((const int8_t *)from, here)
                                                 : vreinterpretq_s16_u16(vldrbq_z_u16(from, here)));
        }
        int16_t all[8];
        vst1q_s16(all, sums);
        for (uint32_t m = 0; m < 8 && c + m < channels; ++m)
            to[c + m] = nk_finish(stage, nk_pool_mean(all[m], w->count));
    }
}

int nk_helium_max_pool2d(const nk_call *call, const nk_stage *stage) {
    return nk_pool_pixels(call, stage, pixel_of_largest);
}

int nk_helium_avg_pool2d(const nk_call *call, const nk_stage *stage) {
    return nk_pool_pixels(call, stage, pixel_of_means);
}

#endif
