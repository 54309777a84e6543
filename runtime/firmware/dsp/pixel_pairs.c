#include "pixel_pairs.h"

#if NK_HAS_DSP

void nk_pixel_pairs(const nk_call *call, const nk_operand *out, nk_pixels_made make,
                    const void *loop) {
    for (uint32_t image = 0; image < out->batch; ++image) {
        nk_pixels p = {.image = image, .count = 0};
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                p.y[p.count] = y, p.x[p.count] = (int32_t)x, p.to[p.count] = to;
                if (++p.count < 2) continue;
                if (nk_stopped(call)) return;
                make(loop, &p);
                p.count = 0;
            }
        }
        if (p.count) make(loop, &p);
    }
}

#endif
