/* Channels: a call in parts of some output channels each gives the bytes of the whole, for windows
 * of every kind and every instruction set. */
#include "model.h"
#include "split.h"
#include "parts.h"

enum { CASES = 100, CHANNELS = 136 };

static uint8_t weights[9 * CHANNELS * CHANNELS], table[12 * CHANNELS];

static void fill_table(uint32_t channels) {
    const uint32_t column = (channels + 7) / 8 * 8;
    for (uint32_t at = 0; at < 3 * column; at++) { /* bias, multiplier, shift */
        const int32_t word = at < column       ? (int32_t)below(2000)
                             : at < 2 * column ? (1 << 30) + (int32_t)below(1 << 29)
                                               : -8 - (int32_t)below(4);
        memcpy(table + 4 * at, &word, sizeof word);
    }
}

/* A convolution or a product of vectors over a few pixels. */
static void any_call(nk_call *call, int32_t *params) {
    static const uint32_t kernels[] = {NEUTRON_KERNEL_CONV2D, NEUTRON_KERNEL_DEPTHWISE_CONV2D,
                                       NEUTRON_KERNEL_FULLY_CONNECTED};
    const uint32_t kind = kernels[below(3)], inputs = 1 + below(CHANNELS),
                   outputs = kind == NEUTRON_KERNEL_DEPTHWISE_CONV2D ? inputs : 1 + below(CHANNELS),
                   width = 1 + below(9), height = 1 + below(4);
    const int32_t window = kind == NEUTRON_KERNEL_FULLY_CONNECTED ? 1 : 1 + 2 * (int32_t)below(2);
    const nk_conv2d_params p = {window,     window, 1, 1, 1, 1,    window / 2,
                                window / 2, 1,      3, 0, 0, -128, 127};
    const nk_fully_connected_params vector = {0, 0, 0, -128, 127};
    memset(params, 0, NEUTRON_MAX_PARAMS * sizeof *params);
    if (kind == NEUTRON_KERNEL_FULLY_CONNECTED) memcpy(params, &vector, sizeof vector);
    else memcpy(params, &p, sizeof p); /* the depth multiplier is where the groups are */
    start_call(call, kind, params, sizeof p / sizeof *params,
               &(sizes){height, width, inputs, width, outputs}, flat(weights, sizeof weights),
               flat(table, sizeof table));
}

static void cut_channels(const nk_call *call, uint32_t at, uint32_t parts, nk_call *part) {
    static int32_t constants[3 * ND_CUT_CHANNELS];
    nd_cut_channels(call, at, parts, constants, part);
    CHECK(part->operands[NK_CONV2D_OUTPUT].channels > 0);
}

static void any_parts(const char *isa) {
    nk_call call;
    int32_t params[NEUTRON_MAX_PARAMS];
    any_call(&call, params);
    const uint32_t parts = 2 + below(3);
    fill_table(call.operands[NK_CONV2D_OUTPUT].channels);
    if (nd_channels_independent(&call, parts)) parts_are_the_whole(isa, &call, parts, cut_channels);
}

static void what_cannot_be_cut(void) {
    nk_call call;
    int32_t params[NEUTRON_MAX_PARAMS];
    do any_call(&call, params);
    while (call.kernel != NEUTRON_KERNEL_CONV2D || !nd_channels_independent(&call, 2));
    nk_operand *output = &call.operands[NK_CONV2D_OUTPUT];
    const nk_operand whole = *output;
    output->channels = 16; /* too few */
    CHECK(!nd_channels_independent(&call, 2));
    output->channels = output->pixel = 2 * ND_CUT_CHANNELS + 1; /* too many for a part's table */
    CHECK(!nd_channels_independent(&call, 2));
    *output = whole;
    output->pixel = output->channels - 1; /* pixels overlap */
    CHECK(!nd_channels_independent(&call, 2));
    *output = whole;
    call.units = 3; /* parts would begin inside a block of weights */
    CHECK(!nd_channels_independent(&call, 2));
    call.units = 8;
    params[offsetof(nk_conv2d_params, groups) / sizeof *params] = 2;
    CHECK(!nd_channels_independent(&call, 2));
    call.kernel = NEUTRON_KERNEL_ADD;
    CHECK(!nd_channels_independent(&call, 2));
}

int main(void) {
    fill(in, sizeof in);
    fill(weights, sizeof weights);
    on_every_set(CASES, any_parts);
    what_cannot_be_cut();
    return check_result();
}
