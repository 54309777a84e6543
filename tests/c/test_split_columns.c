/* Columns: a call in parts of some columns each gives the bytes of the whole, for windows of every
 * kind and every instruction set. */
#include "model.h"
#include "split.h"
#include "parts.h"

enum { CASES = 200, CHANNELS = 40 };

static uint8_t weights[25 * CHANNELS * CHANNELS], table[12 * CHANNELS];

static void fill_table(void) {
    for (uint32_t at = 0; at < 3 * CHANNELS; at++) { /* bias, multiplier, shift */
        const int32_t word = at < CHANNELS       ? (int32_t)below(2000)
                             : at < 2 * CHANNELS ? 1 << 30
                                                 : -8;
        memcpy(table + 4 * at, &word, sizeof word);
    }
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
    start_call(call, deep ? NEUTRON_KERNEL_DEPTHWISE_CONV2D : NEUTRON_KERNEL_CONV2D, params,
               sizeof p / sizeof *params, &(sizes){height, width, inputs, columns, outputs},
               flat(weights, sizeof weights), flat(table, sizeof table));
    call->row0 = (int32_t)below(height);
    call->row1 = call->row0 + 1 + (int32_t)below(height - (uint32_t)call->row0);
}

static void cut_columns(const nk_call *call, uint32_t at, uint32_t parts, nk_call *part) {
    static int32_t changed[NEUTRON_MAX_PARAMS];
    const uint32_t width = call->operands[NK_CONV2D_OUTPUT].width;
    nd_cut_columns(call, width * at / parts, width * (at + 1) / parts, changed, part);
}

static void any_parts(const char *isa) {
    nk_call call;
    int32_t params[NEUTRON_MAX_PARAMS];
    any_call(&call, params);
    const uint32_t parts = 2 + below(3);
    if (nd_columns_independent(&call, parts)) parts_are_the_whole(isa, &call, parts, cut_columns);
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
    fill(in, sizeof in);
    fill(weights, sizeof weights);
    fill_table();
    on_every_set(CASES, any_parts);
    what_cannot_be_cut();
    return check_result();
}
