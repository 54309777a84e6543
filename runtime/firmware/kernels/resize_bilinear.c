/* resize_bilinear: INT8 in integers with 10 fractional bits, UINT8 in float32 as LiteRT does
 * (docs/numerics.md, Resize). */
#include <string.h>

#include "nk_elementwise.h"

#define ONE 1024
#define INFINITE 0x7F800000 /* bits of a float32; what lies above is not a number */

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

/* Float arithmetic with every result rounded to float32: volatile keeps a compiler from fusing a
 * product with a sum. */
static float rounded(float v) {
    volatile float stored = v;
    return stored;
}

static float from_bits(int32_t word) {
    float v;
    memcpy(&v, &word, sizeof v);
    return v;
}

typedef struct {
    uint32_t low, high;
    float fraction, rest; /* weights of `high` and of `low` */
} real_taps;

static real_taps real_taps_of(int32_t at, float scale, int32_t half, uint32_t size) {
    const float last = (float)(size - 1);
    float t =
        half ? rounded(rounded(((float)at + 0.5f) * scale) - 0.5f) : rounded((float)at * scale);
    t = t > last + 1.0f ? last + 1.0f : t; /* only with scales that no compiler makes */
    const int32_t whole = (int32_t)t, down = (float)whole > t ? whole - 1 : whole;
    const int32_t up = (float)down < t ? down + 1 : down, most = (int32_t)size - 1;
    const int32_t low = nk_clamp(down, 0, most);
    const float fraction = rounded(t - (float)nk_max(down, 0));
    const real_taps found = {(uint32_t)low, (uint32_t)nk_clamp(up, 0, most), fraction,
                             rounded(1.0f - fraction)};
    return found;
}

static float weighted(uint8_t value, float vertical, float horizontal) {
    return rounded(rounded((float)value * vertical) * horizontal);
}

static void real_row(const nk_call *call, const nk_resize_bilinear_params *p, const nk_operand *in,
                     const nk_operand *out, uint32_t image, int32_t y) {
    const real_taps v = real_taps_of(y, from_bits(p->scale_height), p->half_pixel, in->height);
    const uint8_t *top = nk_row(in, image, (int32_t)v.low),
                  *bottom = nk_row(in, image, (int32_t)v.high);
    uint8_t *to = nk_row(out, image, y);
    for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
        if (nk_stopped(call)) return;
        const real_taps h =
            real_taps_of((int32_t)x, from_bits(p->scale_width), p->half_pixel, in->width);
        const size_t left = (size_t)h.low * in->pixel, right = (size_t)h.high * in->pixel;
        for (uint32_t c = 0; c < out->channels; ++c) {
            float sum = rounded(weighted(top[left + c], v.rest, h.rest) +
                                weighted(bottom[left + c], v.fraction, h.rest));
            sum = rounded(sum + weighted(top[right + c], v.rest, h.fraction));
            sum =
                rounded(rounded(sum + weighted(bottom[right + c], v.fraction, h.fraction)) + 0.5f);
            to[c] = (uint8_t)(sum < 0.0f ? 0 : sum > 255.0f ? 255 : (int32_t)sum);
        }
    }
}

/* Four taps and their weights, for one output pixel. */
typedef struct {
    const uint8_t *from[4];
    int32_t weight[4];
} corners;

/* |weights| sum to at most 2048 * 2048, times 255: below 2^31. */
static void blend(const corners *k, int32_t flip, uint32_t channels, uint8_t *to) {
    for (uint32_t c = 0; c < channels; ++c) {
        int32_t sum = 0;
        for (int at = 0; at < 4; ++at) sum += nk_value(k->from[at][c], flip) * k->weight[at];
        to[c] = (uint8_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
    }
}

static void blend16(const corners *k, uint32_t channels, uint8_t *to) {
    for (size_t c = 0; c < channels; ++c) {
        int64_t sum = 0;
        for (int at = 0; at < 4; ++at)
            sum += (int64_t)nk_load16(k->from[at] + 2 * c) * k->weight[at];
        nk_store16(to + 2 * c, (int32_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20)));
    }
}

int32_t nk_resize_bilinear(uint32_t verb, nk_call *call) {
    const nk_resize_bilinear_params *p =
        (const nk_resize_bilinear_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_RESIZE_BILINEAR_INPUT],
                     *out = &call->operands[NK_RESIZE_BILINEAR_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_same_type(in, out))
            return nk_refuse(call, "input and output must be of one type of 8 or 16 bits");
        if (in->batch != out->batch || in->channels != out->channels)
            return nk_refuse(call, "input and output differ in batch or channels");
        if (p->scale_height < 0 || p->scale_width < 0)
            return nk_refuse(call, "a scale is negative");
        if (in->dtype == NEUTRON_DTYPE_UINT8 &&
            (p->scale_height >= INFINITE || p->scale_width >= INFINITE))
            return nk_refuse(call, "a scale is no number");
        if (!nk_inside(in) || !nk_inside(out))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            if (in->dtype == NEUTRON_DTYPE_UINT8) {
                real_row(call, p, in, out, image, y);
                continue;
            }
            const taps v = taps_of(y, p->scale_height, p->half_pixel, in->height);
            const uint8_t *top = nk_row(in, image, (int32_t)v.low),
                          *bottom = nk_row(in, image, (int32_t)v.high);
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                if (nk_stopped(call)) return 0;
                const taps h = taps_of((int32_t)x, p->scale_width, p->half_pixel, in->width);
                const size_t left = (size_t)h.low * in->pixel, right = (size_t)h.high * in->pixel;
                const corners k = {
                    {top + left, top + right, bottom + left, bottom + right},
                    {(ONE - v.fraction) * (ONE - h.fraction), (ONE - v.fraction) * h.fraction,
                     v.fraction * (ONE - h.fraction), v.fraction * h.fraction},
                };
                if (nk_is_wide(out)) blend16(&k, out->channels, to);
                else blend(&k, nk_flip(in), out->channels, to);
            }
        }
    }
    return 0;
}
