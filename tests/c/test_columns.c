/* Columns: a call in parts of some columns each gives the bytes of the whole, for windows of every
 * kind and every instruction set. */
#include <stdlib.h>

#include "check.h"
#include "model.h"
#include "nk_simd.h"
#include "operands.h"

enum { ROOM = 1 << 17, CASES = 200, CHANNELS = 40 };

static uint8_t in[ROOM], out[ROOM], expected[ROOM], weights[25 * CHANNELS * CHANNELS],
    table[12 * CHANNELS];

static uint32_t state = 88172645;

static uint32_t below(uint32_t end) { /* xorshift32 */
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state % end;
}

static void fill(void) {
    for (size_t at = 0; at < sizeof in; at++) in[at] = (uint8_t)below(256);
    for (size_t at = 0; at < sizeof weights; at++) weights[at] = (uint8_t)below(256);
    for (uint32_t at = 0; at < 3 * CHANNELS; at++) { /* bias, multiplier, shift */
        const int32_t word = at < CHANNELS       ? (int32_t)below(2000)
                             : at < 2 * CHANNELS ? 1 << 30
                                                 : -8;
        memcpy(table + 4 * at, &word, sizeof word);
    }
}

static nk_operand image(uint8_t *at, uint32_t height, uint32_t width, uint32_t channels,
                        uint32_t pixel) {
    return images(at, 1, height, width, channels, pixel, ROOM);
}

/* A convolution over up to 90 columns of up to 8 rows. */
static void any_call(nk_call *call, int32_t *params) {
    const bool deep = below(2) != 0;
    const int32_t kernel = 1 + 2 * (int32_t)below(3), stride = 1 + (int32_t)below(2),
                  dilation = 1 + (int32_t)below(2), pad = (int32_t)below((uint32_t)kernel);
    const uint32_t inputs = 1 + below(CHANNELS), outputs = deep ? inputs : 1 + below(CHANNELS),
                   width = 34 + below(56), height = 1 + below(8);
    const int64_t fit = ((int64_t)width + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
    const uint32_t columns = (uint32_t)(fit > 16 ? fit : 16);
    const nk_conv2d_params p = {kernel, kernel, stride, stride, dilation, dilation, pad,
                                pad,    1,      3,      0,      0,        -128,     127};
    memcpy(params, &p, sizeof p); /* the depth multiplier is where the groups are */
    memset(call, 0, sizeof *call);
    call->kernel = deep ? NEUTRON_KERNEL_DEPTHWISE_CONV2D : NEUTRON_KERNEL_CONV2D;
    call->units = call->length = 8;
    call->rounding = NEUTRON_ROUNDING_DOUBLE;
    call->params = params;
    call->param_count = sizeof p / sizeof *params;
    call->operand_count = NK_CONV2D_OPERANDS;
    call->operands[NK_CONV2D_INPUT] = image(in, height, width, inputs, inputs + below(3));
    call->operands[NK_CONV2D_WEIGHTS] = flat(weights, sizeof weights);
    call->operands[NK_CONV2D_TABLE] = flat(table, sizeof table);
    call->operands[NK_CONV2D_OUTPUT] = image(out, height, columns, outputs, outputs + below(3));
    call->row0 = (int32_t)below(height);
    call->row1 = call->row0 + 1 + (int32_t)below(height - (uint32_t)call->row0);
}

static void parts_are_the_whole(const char *isa) {
    nk_call call, part;
    int32_t params[NEUTRON_MAX_PARAMS], changed[NEUTRON_MAX_PARAMS];
    any_call(&call, params);
    const uint32_t parts = 2 + below(3), width = call.operands[NK_CONV2D_OUTPUT].width;
    CHECK_EQUAL(neutronKernels[call.kernel](NK_CHECK, &call), 0);
    if (!nd_columns_independent(&call, parts)) return;
    memset(out, 0xA5, sizeof out);
    CHECK_EQUAL(neutronKernels[call.kernel](NK_RUN, &call), 0);
    memcpy(expected, out, sizeof out);
    memset(out, 0xA5, sizeof out);
    for (uint32_t at = parts; at-- > 0;) { /* in any order */
        nd_cut_columns(&call, width * at / parts, width * (at + 1) / parts, changed, &part);
        CHECK_EQUAL(neutronKernels[part.kernel](NK_CHECK, &part), 0);
        CHECK_EQUAL(neutronKernels[part.kernel](NK_RUN, &part), 0);
    }
    if (memcmp(expected, out, sizeof out) == 0) return;
    fprintf(stderr, "%s: kernel %u, %u parts of %u columns give other bytes\n", isa, call.kernel,
            parts, width);
    CHECK(0);
}

static void what_cannot_be_cut(void) {
    nk_call call;
    int32_t params[NEUTRON_MAX_PARAMS];
    do any_call(&call, params);
    while (!nd_columns_independent(&call, 2));
    nk_operand *output = &call.operands[NK_CONV2D_OUTPUT];
    const nk_operand whole = *output;
    output->width = 15; /* too few */
    CHECK(!nd_columns_independent(&call, 2));
    *output = whole;
    output->pixel = output->channels - 1; /* columns overlap */
    CHECK(!nd_columns_independent(&call, 2));
    *output = whole;
    call.operands[NK_CONV2D_INPUT].width = 1; /* the last windows lie behind the image */
    CHECK(!nd_columns_independent(&call, 2));
    call.operands[NK_CONV2D_INPUT].width = whole.width * 2;
    call.kernel = NEUTRON_KERNEL_ADD;
    CHECK(!nd_columns_independent(&call, 2));
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
