/* resize_bilinear: integer interpolation with 10 fractional bits (docs/numerics.md, Resize). */
#include "nk_elementwise.h"

#define ONE 1024

typedef struct {
    uint32_t low, high; /* the two rows or columns */
    int32_t fraction;   /* weight of `high` in 1/1024, -512..1023; negative at the border with
                           half-pixel centres */
} taps;

static taps taps_of(int32_t at, int32_t scale, int32_t half, uint32_t size) {
    const int64_t last = (int64_t)size - 1;
    int64_t t = (int64_t)at * scale;
    if (half) t += scale / 2 - ONE / 2;
    int64_t low = t / ONE, high = (t + ONE - 1) / ONE;
    low = low < 0 ? 0 : low;
    const taps found = {
        (uint32_t)(low > last ? last : low),
        (uint32_t)(high < 0      ? 0
                   : high > last ? last
                                 : high),
        (int32_t)(t - ONE * low),
    };
    return found;
}

int32_t nk_resize_bilinear(uint32_t verb, nk_call *call) {
    const nk_resize_bilinear_params *p =
        (const nk_resize_bilinear_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_RESIZE_BILINEAR_INPUT],
                     *out = &call->operands[NK_RESIZE_BILINEAR_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_is_byte(in) || in->dtype != out->dtype)
            return nk_refuse(call, "input and output must be of one 8-bit type");
        if (in->batch != out->batch || in->channels != out->channels)
            return nk_refuse(call, "input and output differ in batch or channels");
        if (p->scale_height < 0 || p->scale_width < 0)
            return nk_refuse(call, "a scale is negative");
        if (!nk_inside(in) || !nk_inside(out))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    const int32_t flip = nk_flip(in);
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const taps v = taps_of(y, p->scale_height, p->half_pixel, in->height);
            const uint8_t *top = nk_row(in, image, (int32_t)v.low),
                          *bottom = nk_row(in, image, (int32_t)v.high);
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                const taps h = taps_of((int32_t)x, p->scale_width, p->half_pixel, in->width);
                const size_t left = (size_t)h.low * in->pixel, right = (size_t)h.high * in->pixel;
                const int32_t top_left = (ONE - v.fraction) * (ONE - h.fraction);
                const int32_t top_right = (ONE - v.fraction) * h.fraction;
                const int32_t bottom_left = v.fraction * (ONE - h.fraction);
                const int32_t bottom_right = v.fraction * h.fraction;
                /* |weights| sum to at most 2048 * 2048, times 255: below 2^31. */
                for (uint32_t c = 0; c < out->channels; ++c) {
                    const int32_t sum = nk_value(top[left + c], flip) * top_left +
                                        nk_value(top[right + c], flip) * top_right +
                                        nk_value(bottom[left + c], flip) * bottom_left +
                                        nk_value(bottom[right + c], flip) * bottom_right;
                    to[c] = (uint8_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
                }
            }
        }
    }
    return 0;
}
