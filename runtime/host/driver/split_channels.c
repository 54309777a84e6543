#include <string.h>

#include "split.h"
#include "nk_window.h"

#if ND_THREADS

/* Parts begin at multiples of this many channels, the step of the vector loops. */
enum { STEP = 16 };

static uint32_t steps_of(uint32_t channels) { return nk_blocks(channels, STEP); }

/* Whether each output channel has its own weights; their bytes per block of units. */
static bool block_bytes(const nk_call *call, uint64_t *bytes) {
    const nk_operand *in = &call->operands[NK_CONV2D_INPUT];
    const nk_conv2d_params *conv = (const nk_conv2d_params *)(const void *)call->params;
    const nk_depthwise_conv2d_params *deep =
        (const nk_depthwise_conv2d_params *)(const void *)call->params;
    switch (call->kernel) {
    case NEUTRON_KERNEL_CONV2D:
        *bytes = nk_dense_bytes(call, 1, (uint64_t)conv->kernel_h * (uint32_t)conv->kernel_w,
                                in->channels);
        return conv->groups == 1;
    case NEUTRON_KERNEL_FULLY_CONNECTED:
        *bytes = nk_dense_bytes(call, 1, 1, in->channels);
        return true;
    case NEUTRON_KERNEL_DEPTHWISE_CONV2D:
        *bytes = (uint64_t)deep->kernel_h * (uint32_t)deep->kernel_w * call->units;
        return deep->depth_multiplier == 1;
    default: return false;
    }
}

_Static_assert((int)NK_CONV2D_TABLE == (int)NK_FULLY_CONNECTED_TABLE &&
                   (int)NK_CONV2D_OUTPUT == (int)NK_FULLY_CONNECTED_OUTPUT &&
                   (int)NK_CONV2D_TABLE == (int)NK_DEPTHWISE_CONV2D_TABLE &&
                   (int)NK_CONV2D_OUTPUT == (int)NK_DEPTHWISE_CONV2D_OUTPUT,
               "operands of the three kernels are the same");

bool nd_channels_independent(const nk_call *call, uint32_t parts) {
    uint64_t bytes;
    const nk_operand *out = &call->operands[NK_CONV2D_OUTPUT];
    return block_bytes(call, &bytes) && STEP % call->units == 0 && out->pixel >= out->channels &&
           steps_of(out->channels) >= parts &&
           nk_blocks(steps_of(out->channels), parts) * STEP <= ND_CUT_CHANNELS;
}

/* Advance an operand by `bytes`. */
static void skip_bytes(nk_operand *o, uint64_t bytes) {
    o->data += bytes;
    o->available -= (uint32_t)bytes;
}

void nd_cut_channels(const nk_call *call, uint32_t at, uint32_t parts,
                     int32_t table[3 * ND_CUT_CHANNELS], nk_call *part) {
    const uint32_t steps = steps_of(call->operands[NK_CONV2D_OUTPUT].channels),
                   first = (uint32_t)((uint64_t)steps * at / parts * STEP),
                   last = (uint32_t)((uint64_t)steps * (at + 1) / parts * STEP);
    *part = *call;
    nk_operand *out = &part->operands[NK_CONV2D_OUTPUT],
               *constants = &part->operands[NK_CONV2D_TABLE];
    const size_t column = (size_t)nk_blocks(out->channels, call->units) * call->units;
    const uint32_t end = last < out->channels ? last : out->channels;
    const size_t cut = (size_t)nk_blocks(end - first, call->units) * call->units;
    uint64_t block = 0;
    (void)block_bytes(call, &block);
    skip_bytes(&part->operands[NK_CONV2D_WEIGHTS], first / call->units * block);
    skip_bytes(out, first);
    out->channels = end - first;
    if (call->kernel == NEUTRON_KERNEL_DEPTHWISE_CONV2D) {
        skip_bytes(&part->operands[NK_CONV2D_INPUT], first);
        part->operands[NK_CONV2D_INPUT].channels = end - first;
    }
    for (uint32_t word = 0; word < 3; word++) /* bias, multiplier, shift */
        memcpy(table + word * cut, constants->data + 4 * (word * column + first), 4 * cut);
    constants->data = (uint8_t *)table;
    constants->available = (uint32_t)(3 * cut * sizeof *table);
    part->place = NULL; /* cached sums and weights are those of the whole call */
}

#endif
