/* svdf: a layer of rank-1 filters over the last inputs, as LiteRT computes it in integers. Each
 * filter keeps its last outputs; sequences of the batch are the pixels of one row. */
#include "nk_fixed16.h"
#include "nk_window.h"

enum { MOST = 1 << 14 }; /* filters, units and steps remembered */
enum { SIGNED = 0x80 };  /* what nk_flip() says of INT8 */

static int32_t check(nk_call *call, const nk_svdf_params *p) {
    const nk_operand *in = &call->operands[NK_SVDF_INPUT], *out = &call->operands[NK_SVDF_OUTPUT];
    const nk_operand *memory = &call->operands[NK_SVDF_MEMORY];
    if (in->dtype != NEUTRON_DTYPE_INT8 || out->dtype != NEUTRON_DTYPE_INT8)
        return nk_refuse(call, "input and output must be INT8");
    if (memory->dtype != NEUTRON_DTYPE_INT16) return nk_refuse(call, "the memory must be INT16");
    if (in->batch != 1 || out->batch != 1 || in->height != 1 || out->height != 1 ||
        in->width != out->width)
        return nk_refuse(call, "input and output must be one row, a pixel for each sequence");
    if (!nk_packing_ok(call)) return nk_refuse(call, "the packing has more than 64 units or lanes");
    if (p->rank < 1 || p->rank > MOST || p->steps < 1 || p->steps > MOST || out->channels > MOST ||
        (uint32_t)p->rank > MOST / out->channels)
        return nk_refuse(call, "more than 16384 filters or steps");
    const uint64_t filters = (uint64_t)out->channels * (uint32_t)p->rank;
    const uint64_t words = filters + out->channels;
    if (!nk_inside(in) || !nk_inside(out) ||
        !nk_inside_flat(&call->operands[NK_SVDF_WEIGHTS],
                        nk_dense_bytes(call, (uint32_t)filters, 1, in->channels)) ||
        !nk_inside_flat(&call->operands[NK_SVDF_TABLE],
                        4 * words + 2 * filters * (uint32_t)p->steps) ||
        !nk_inside_flat(memory, 2 * filters * (uint32_t)p->steps * out->width))
        return nk_refuse(call, "an operand leaves its region");
    return 0;
}

static int32_t rescaled(int32_t v, int32_t multiplier, int32_t shift) {
    return nk_mbqm(v, multiplier, nk_safe_shift(NEUTRON_ROUNDING_DOUBLE, shift));
}

/* Every filter forgets its oldest output and remembers the one for this input. */
static void remember(const nk_call *call, const nk_svdf_params *p, const uint8_t *vector,
                     uint32_t filters, int16_t *memory) {
    const uint32_t inputs = call->operands[NK_SVDF_INPUT].channels, steps = (uint32_t)p->steps;
    const int8_t *weights = (const int8_t *)call->operands[NK_SVDF_WEIGHTS].data;
    const uint8_t *bias = call->operands[NK_SVDF_TABLE].data;
    const size_t block = (size_t)nk_dense_bytes(call, 1, 1, inputs);
    for (uint32_t at = 0; at < filters; at += call->units, weights += block) {
        const uint32_t count = filters - at < call->units ? filters - at : call->units;
        uint32_t acc[NK_MAX_UNITS] = {0};
        nk_dot(call, vector, SIGNED, 0, inputs, weights, acc);
        for (uint32_t m = 0; m < count; m++) {
            int16_t *mine = memory + (size_t)(at + m) * steps;
            memmove(mine, mine + 1, sizeof *mine * (steps - 1));
            const int32_t total =
                nk_wrap_add((int32_t)acc[m], nk_load32(bias + 4 * (size_t)(at + m)));
            mine[steps - 1] =
                (int16_t)nk_sat16(rescaled(total, p->filter_multiplier, p->filter_shift));
        }
    }
}

/* One unit's sum over its filters and their memories, wrapping as the reference's does. */
static int32_t unit_sum(const nk_svdf_params *p, const int16_t *memory, const uint8_t *weights) {
    const size_t count = (size_t)p->rank * (uint32_t)p->steps;
    uint32_t sum = 0;
    for (size_t at = 0; at < count; at++) {
        int16_t weight;
        memcpy(&weight, weights + 2 * at, sizeof weight);
        sum += (uint32_t)((int32_t)weight * memory[at]);
    }
    return (int32_t)sum;
}

int32_t nk_svdf(uint32_t verb, nk_call *call) {
    const nk_svdf_params *p = (const nk_svdf_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *in = &call->operands[NK_SVDF_INPUT], *out = &call->operands[NK_SVDF_OUTPUT];
    const uint32_t filters = out->channels * (uint32_t)p->rank;
    const uint8_t *bias = call->operands[NK_SVDF_TABLE].data + 4 * (size_t)filters;
    const uint8_t *weights = bias + 4 * (size_t)out->channels;
    const size_t per_unit = (size_t)p->rank * (uint32_t)p->steps;
    for (uint32_t x = 0; x < out->width; x++) {
        if (nk_stopped(call)) return 0;
        int16_t *memory = (int16_t *)(void *)call->operands[NK_SVDF_MEMORY].data +
                          (size_t)x * filters * (uint32_t)p->steps;
        uint8_t *to = nk_row(out, 0, 0) + (size_t)x * out->pixel;
        remember(call, p, nk_row(in, 0, 0) + (size_t)x * in->pixel, filters, memory);
        for (uint32_t unit = 0; unit < out->channels; unit++) {
            const int32_t sum =
                unit_sum(p, memory + unit * per_unit, weights + 2 * unit * per_unit);
            const int32_t total = nk_wrap_add(sum, nk_load32(bias + 4 * (size_t)unit));
            const int64_t scaled =
                (int64_t)rescaled(total, p->output_multiplier, p->output_shift) + p->output_zero;
            to[unit] = (uint8_t)nk_clamp(nk_saturate(scaled), INT8_MIN, INT8_MAX);
        }
    }
    return 0;
}
