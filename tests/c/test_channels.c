/* Channels: a call in parts of some output channels each gives the bytes of the whole, for windows
 * of every kind and every instruction set. */
#include <stdlib.h>

#include "check.h"
#include "model.h"
#include "nk_simd.h"
#include "operands.h"

enum { ROOM = 1 << 17, CASES = 100, CHANNELS = 136 };

static uint8_t in[ROOM], out[ROOM], expected[ROOM], weights[9 * CHANNELS * CHANNELS],
    table[12 * CHANNELS];

static uint32_t state = 88172645;

static uint32_t below(uint32_t end) { /* xorshift32 */
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state % end;
}

static void fill(void) {
    for (size_t at = 0; at < sizeof in; at++) in[at] = (uint8_t)below(256);
    for (size_t at = 0; at < sizeof weights; at++) weights[at] = (uint8_t)below(256);
}

static void fill_table(uint32_t channels) {
    const uint32_t column = (channels + 7) / 8 * 8;
    for (uint32_t at = 0; at < 3 * column; at++) { /* bias, multiplier, shift */
        const int32_t word = at < column       ? (int32_t)below(2000)
                             : at < 2 * column ? (1 << 30) + (int32_t)below(1 << 29)
                                               : -8 - (int32_t)below(4);
        memcpy(table + 4 * at, &word, sizeof word);
    }
}

static nk_operand image(uint8_t *at, uint32_t height, uint32_t width, uint32_t channels,
                        uint32_t pixel) {
    return images(at, 1, height, width, channels, pixel, ROOM);
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
    memset(call, 0, sizeof *call);
    call->kernel = kind;
    call->units = call->length = 8;
    call->rounding = NEUTRON_ROUNDING_DOUBLE;
    call->params = params;
    call->param_count = sizeof p / sizeof *params;
    call->operand_count = NK_CONV2D_OPERANDS;
    call->operands[NK_CONV2D_INPUT] = image(in, height, width, inputs, inputs + below(3));
    call->operands[NK_CONV2D_WEIGHTS] = flat(weights, sizeof weights);
    call->operands[NK_CONV2D_TABLE] = flat(table, sizeof table);
    call->operands[NK_CONV2D_OUTPUT] = image(out, height, width, outputs, outputs + below(3));
    call->row1 = (int32_t)height;
}

static void parts_are_the_whole(const char *isa) {
    nk_call call, part;
    int32_t params[NEUTRON_MAX_PARAMS], constants[3 * ND_CUT_CHANNELS];
    any_call(&call, params);
    const uint32_t parts = 2 + below(3), channels = call.operands[NK_CONV2D_OUTPUT].channels;
    fill_table(channels);
    CHECK_EQUAL(neutronKernels[call.kernel](NK_CHECK, &call), 0);
    if (!nd_channels_independent(&call, parts)) return;
    memset(out, 0xA5, sizeof out);
    CHECK_EQUAL(neutronKernels[call.kernel](NK_RUN, &call), 0);
    memcpy(expected, out, sizeof out);
    memset(out, 0xA5, sizeof out);
    for (uint32_t at = parts; at-- > 0;) { /* in any order */
        nd_cut_channels(&call, at, parts, constants, &part);
        CHECK(part.operands[NK_CONV2D_OUTPUT].channels > 0);
        CHECK_EQUAL(neutronKernels[part.kernel](NK_CHECK, &part), 0);
        CHECK_EQUAL(neutronKernels[part.kernel](NK_RUN, &part), 0);
    }
    if (memcmp(expected, out, sizeof out) == 0) return;
    fprintf(stderr, "%s: kernel %u, %u parts of %u channels give other bytes\n", isa, call.kernel,
            parts, channels);
    CHECK(0);
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
    static const char *const sets[] = {"portable", "avx2", "avx512vnni", "neon", "dotprod", "i8mm"};
    fill();
    for (size_t at = 0; at < sizeof sets / sizeof sets[0]; at++)
        for (int repeat = 0; neutronSetIsa(sets[at]) && repeat < CASES; repeat++)
            parts_are_the_whole(sets[at]);
    what_cannot_be_cut();
    return check_result();
}
