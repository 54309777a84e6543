/* arg_max: index of the first largest (or smallest) stored value along one dimension, as INT32 or
 * INT64. */
#include "nk_elementwise.h"

enum { BATCH = 0, HEIGHT = 1, WIDTH = 2, CHANNELS = 3 };

static uint32_t size_of(const nk_operand *o, int32_t axis) {
    return axis == BATCH    ? o->batch
           : axis == HEIGHT ? o->height
           : axis == WIDTH  ? o->width
                            : o->channels;
}

static int64_t best_index(const nk_operand *in, int32_t axis, int32_t sign, uint32_t image,
                          int32_t y, uint32_t x, uint32_t c) {
    const uint32_t size = size_of(in, axis);
    const int32_t flip = nk_flip(in);
    uint32_t best = 0;
    int32_t best_value = INT32_MIN;
    for (uint32_t k = 0; k < size; ++k) {
        const uint8_t *row = nk_row(in, axis == BATCH ? k : image, axis == HEIGHT ? (int32_t)k : y);
        const size_t at = (size_t)(axis == WIDTH ? k : x) * in->pixel + (axis == CHANNELS ? k : c);
        const int32_t v = sign * nk_value(row[at], flip);
        if (v > best_value) {
            best_value = v;
            best = k;
        }
    }
    return best;
}

int32_t nk_arg_max(uint32_t verb, nk_call *call) {
    const nk_arg_max_params *p = (const nk_arg_max_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_ARG_MAX_INPUT],
                     *out = &call->operands[NK_ARG_MAX_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_is_byte(in)) return nk_refuse(call, "the input must be of 8 bits");
        if (out->dtype != NEUTRON_DTYPE_INT32 && out->dtype != NEUTRON_DTYPE_INT64)
            return nk_refuse(call, "the output must be INT32 or INT64");
        if (p->axis < BATCH || p->axis > CHANNELS || (p->sign != 1 && p->sign != -1))
            return nk_refuse(call, "axis or sign is out of range");
        for (int32_t axis = BATCH; axis <= CHANNELS; ++axis)
            if (size_of(out, axis) != (axis == p->axis ? 1 : size_of(in, axis)))
                return nk_refuse(call, "the output's shape does not follow from the axis");
        if (!nk_inside(in) || !nk_inside(out))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    const size_t item = out->dtype == NEUTRON_DTYPE_INT32 ? 4 : 8;
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            for (uint32_t x = 0; x < out->width; ++x) {
                if (nk_stopped(call)) return 0;
                uint8_t *to = nk_row(out, image, y) + (size_t)x * out->pixel;
                for (uint32_t c = 0; c < out->channels; ++c, to += item) {
                    const int64_t wide = best_index(in, p->axis, p->sign, image, y, x, c);
                    const int32_t narrow = (int32_t)wide;
                    if (item == 4) memcpy(to, &narrow, sizeof narrow);
                    else memcpy(to, &wide, sizeof wide);
                }
            }
        }
    }
    return 0;
}
