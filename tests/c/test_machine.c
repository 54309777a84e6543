#include "check.h"
#include "formulas.h"
#include "generated/microcode.h"
#include "neutron_errors.h"

/* Constants of this test's own, so that calibration may change those of the targets: M = N = 8; mac
 * 1275, lane 1536, row 28672, weight byte 478, decoded byte 100, element 128, call 153600, tile 32.
 * The expected values below are worked out by hand from the formulas of the design, not from the
 * code. */
static const nm_target array = {.name = "array",
                                .hw_version = 2,
                                .cores = 1,
                                .units = 8,
                                .length = 8,
                                .clock_hz = 324000000,
                                .cost = {.mac = 1275,
                                         .lane = 1536,
                                         .row = 28672,
                                         .weight_byte = 478,
                                         .decode_byte = 100,
                                         .element = 128,
                                         .call = 153600,
                                         .tile_pixels = 32,
                                         .dma_byte = 410,
                                         .dma_start = 204800,
                                         .dma_overlaps = 0,
                                         .wide = 2}};

static void compare(nm_cost found, uint64_t compute, uint64_t memory, uint64_t overhead) {
    CHECK_EQUAL(found.compute, compute);
    CHECK_EQUAL(found.memory, memory);
    CHECK_EQUAL(found.overhead, overhead);
}

static void convolution(const nm_target *t) {
    /* CifarNet's first layer: 1024 pixels, 25 taps, 4 channel groups; a tile computes longer than
     * its weights load. */
    nm_work w = {.formula = NEUTRON_COST_CONV,
                 .kernel_h = 5,
                 .kernel_w = 5,
                 .groups = 1,
                 .input_channels = 3,
                 .batch = 1,
                 .rows = 32,
                 .width = 32,
                 .channels = 32,
                 .weight_bytes = 6400};
    compare(nm_call_cost(t, &w), UINT64_C(1275) * 1024 * 25 * 4, 0, 28672 * 32 * 4 + 153600);
    /* Eight pixels: one tile of 1275*8*25 = 255000 per group, the group's 1600 bytes take 764800.
     */
    w.rows = 1, w.width = 8;
    compare(nm_call_cost(t, &w), 255000 * 4, (764800 - 255000) * 4, 28672 * 4 + 153600);
    /* 40 pixels: a full tile, then eight pixels that wait for weights. */
    w.width = 40;
    compare(nm_call_cost(t, &w), UINT64_C(1275) * 40 * 25 * 4, (764800 - 255000) * 4,
            28672 * 4 + 153600);
}

static void coded_weights(const nm_target *t) {
    /* The eight pixels above with their 6400 bytes stored in 4000: 1000 per group take 478000. */
    nm_work w = {.formula = NEUTRON_COST_CONV,
                 .kernel_h = 5,
                 .kernel_w = 5,
                 .groups = 1,
                 .input_channels = 3,
                 .batch = 1,
                 .rows = 1,
                 .width = 8,
                 .channels = 32,
                 .weight_bytes = 6400,
                 .stored_bytes = 4000};
    compare(nm_call_cost(t, &w), 255000 * 4, (478000 - 255000) * 4, 28672 * 4 + 153600);
    /* In 3 bytes: one per group; the group's 1600 are decoded at 100 each, beside the array. */
    w.stored_bytes = 3;
    compare(nm_call_cost(t, &w), 255000 * 4, 0, 28672 * 4 + 153600);
    w.width = 1;
    compare(nm_call_cost(t, &w), 31875 * 4, (160000 - 31875) * 4, 28672 * 4 + 153600);
    /* Fully connected, one pixel of 64 channels: 128 bytes per group of eight, all in 512. */
    const nm_work dense = {.formula = NEUTRON_COST_FC,
                           .input_channels = 64,
                           .batch = 1,
                           .rows = 1,
                           .width = 1,
                           .channels = 64,
                           .weight_bytes = 4096,
                           .stored_bytes = 2048};
    compare(nm_call_cost(t, &dense), 1275 * 8 * 8, (478 * 256 - 1275 * 8) * 8, 153600);
    /* Depth-wise, one pixel of 24 channels: 216 bytes in 100. */
    const nm_work lane = {.formula = NEUTRON_COST_LANE,
                          .kernel_h = 3,
                          .kernel_w = 3,
                          .batch = 1,
                          .rows = 1,
                          .width = 1,
                          .channels = 24,
                          .weight_bytes = 216,
                          .stored_bytes = 100};
    compare(nm_call_cost(t, &lane), 1536 * 9 * 3, 478 * 100 - 1536 * 9 * 3, 28672 * 3 + 153600);
}

static void grouped_convolution(const nm_target *t) {
    /* Two groups of 8 in, 4 out: each needs a pass of its own though both would fit one. */
    const nm_work w = {.formula = NEUTRON_COST_CONV,
                       .kernel_h = 1,
                       .kernel_w = 1,
                       .groups = 2,
                       .input_channels = 16,
                       .batch = 2,
                       .rows = 4,
                       .width = 4,
                       .channels = 8,
                       .weight_bytes = 128};
    compare(nm_call_cost(t, &w), 1275 * 32 * 2, 0, 28672 * 8 * 2 + 153600);
}

static void cores_share_the_channels(void) {
    nm_target t = array; /* 4 cores of 16 units: 64 channels per pass */
    t.cores = 4, t.units = t.length = 16;
    const nm_work w = {.formula = NEUTRON_COST_CONV,
                       .kernel_h = 1,
                       .kernel_w = 1,
                       .groups = 1,
                       .input_channels = 16,
                       .batch = 1,
                       .rows = 1,
                       .width = 32,
                       .channels = 65,
                       .weight_bytes = 0};
    compare(nm_call_cost(&t, &w), 1275 * 32 * 2, 0, 28672 * 2 + 153600);
}

static void lanes(const nm_target *t) {
    nm_work w = {.formula = NEUTRON_COST_LANE,
                 .kernel_h = 3,
                 .kernel_w = 3,
                 .groups = 1,
                 .batch = 1,
                 .rows = 8,
                 .width = 8,
                 .channels = 20,
                 .weight_bytes = 216};
    compare(nm_call_cost(t, &w), 1536 * 64 * 9 * 3, 0, 28672 * 8 * 3 + 153600);
    w.rows = w.width = 1; /* 41472 of lanes against 103248 of weights */
    compare(nm_call_cost(t, &w), 1536 * 9 * 3, 478 * 216 - 1536 * 9 * 3, 28672 * 3 + 153600);
}

static void fully_connected(const nm_target *t) {
    /* 1024 -> 10, one vector: 128 cycles of dot products in each of 2 passes, 16384 bytes of
     * weights. */
    const nm_work w = {.formula = NEUTRON_COST_FC,
                       .input_channels = 1024,
                       .batch = 1,
                       .rows = 1,
                       .width = 1,
                       .channels = 10,
                       .weight_bytes = 16384};
    compare(nm_call_cost(t, &w), 1275 * 128 * 2, (UINT64_C(478) * 8192 - 1275 * 128) * 2, 153600);
}

static void moved_bytes(const nm_target *t) {
    nm_work w = {.formula = NEUTRON_COST_ELEMENT,
                 .batch = 2,
                 .rows = 3,
                 .width = 5,
                 .channels = 7,
                 .moved_bytes = 420};
    compare(nm_call_cost(t, &w), 0, 128 * 420, 28672 * 6 + 153600);
    w.formula = NEUTRON_COST_REDUCE;
    compare(nm_call_cost(t, &w), 1536 * 53, 0, 28672 * 6 + 153600);
    w.formula = NEUTRON_COST_SOFTMAX;
    compare(nm_call_cost(t, &w), 3 * 1536 * 30, 0, 28672 * 6 + 153600);
}

static void product_of_activations(const nm_target *t) {
    /* Two images of 10x20 times 20x9: depth 3, 2 passes, 384 bytes of second operand, 192 per pass.
     */
    const nm_work w = {.formula = NEUTRON_COST_MATMUL,
                       .input_channels = 20,
                       .batch = 2,
                       .rows = 10,
                       .width = 1,
                       .channels = 9};
    compare(nm_call_cost(t, &w), 1275 * 10 * 3 * 2 * 2, (478 * 192 - 1275 * 30) * 4,
            28672 * 20 * 2 + 153600);
}

static void copies_and_rounding(const nm_target *t) {
    compare(nm_dma_cost(t, 1000, 0), 0, 410000, 204800);
    compare(nm_dma_cost(t, 1000, 600), 0, 410 * 600, 204800);
    compare(nm_dma_cost(t, 1000, 10), 0, 100 * 1000, 204800); /* the decoder's pace */
    const nm_cost exact = {1024, 1024, 0}, more = {1024, 1024, 1}, nothing = {0, 0, 0};
    CHECK_EQUAL(nm_cycles(&exact), 2);
    CHECK_EQUAL(nm_cycles(&more), 3);
    CHECK_EQUAL(nm_cycles(&nothing), 0);
}

static void nothing_overflows(const nm_target *t) {
    const nm_work w = {.kernel_h = UINT32_MAX,
                       .kernel_w = UINT32_MAX,
                       .groups = 1,
                       .input_channels = UINT32_MAX,
                       .batch = UINT32_MAX,
                       .rows = UINT32_MAX,
                       .width = UINT32_MAX,
                       .channels = UINT32_MAX,
                       .weight_bytes = UINT64_MAX,
                       .stored_bytes = UINT64_MAX,
                       .moved_bytes = UINT64_MAX};
    for (uint32_t formula = NEUTRON_COST_CONV; formula <= NEUTRON_COST_MATMUL; formula++) {
        nm_work huge = w;
        huge.formula = formula;
        const nm_cost cost = nm_call_cost(t, &huge);
        CHECK_EQUAL(nm_cycles(&cost), nm_ceil_div(UINT64_MAX, 1024));
    }
    const nm_work idle = {.formula = NEUTRON_COST_CONV, .width = 8, .channels = 8};
    compare(nm_call_cost(t, &idle), 0, 0, 0);
}

static void encoded_call(const nm_target *t) {
    struct {
        NeutronInstructionRecord head;
        NeutronCallRecord call;
        NeutronOperandRecord operands[NK_CONV2D_OPERANDS];
        nk_conv2d_params params;
    } code;
    uint32_t words[sizeof code / 4];
    nm_cost cost = {0, 0, 0};
    memset(&code, 0, sizeof code);
    code.head =
        (NeutronInstructionRecord){NEUTRON_OPCODE_CALL, NK_CONV2D_OPERANDS, sizeof code / 4};
    code.call.kernel = NEUTRON_KERNEL_CONV2D;
    const NeutronOperandRecord in = {
        .ring = 32, .batch = 1, .height = 32, .width = 32, .channels = 3};
    const NeutronOperandRecord out = {
        .ring = 32, .batch = 1, .height = 32, .width = 32, .channels = 32};
    const NeutronOperandRecord weights = {.region = NEUTRON_REGION_WEIGHTS,
                                          .ring = 1,
                                          .batch = 1,
                                          .height = 1,
                                          .width = 1,
                                          .channels = 6400};
    code.operands[NK_CONV2D_INPUT] = in;
    code.operands[NK_CONV2D_WEIGHTS] = weights;
    code.operands[NK_CONV2D_OUTPUT] = out;
    code.params.kernel_h = code.params.kernel_w = 5;
    code.params.groups = 1;
    memcpy(words, &code, sizeof code);
    CHECK_EQUAL(nm_encoded_call_cost(t, words, sizeof words / 4, 4, 8, 0, &cost), NEUTRON_NONE);
    compare(cost, UINT64_C(1275) * 128 * 25 * 4, 0, 28672 * 4 * 4 + 153600);

    /* With a TCM, what lies outside it comes over the data mover: 4 of 32 rows of input and output,
     * all weights. */
    nm_target with_tcm = *t;
    const uint64_t computing = UINT64_C(1275) * 128 * 25 * 4;
    with_tcm.tcm_bytes = 1 << 20;
    with_tcm.cost.dma_byte = 1024;
    CHECK_EQUAL(nm_encoded_call_cost(&with_tcm, words, sizeof words / 4, 4, 8, 0, &cost),
                NEUTRON_NONE);
    compare(cost, computing, 0, 28672 * 4 * 4 + 153600); /* beside the array: nothing to wait for */
    with_tcm.cost.dma_byte = 102400;
    CHECK_EQUAL(nm_encoded_call_cost(&with_tcm, words, sizeof words / 4, 4, 8, 0, &cost),
                NEUTRON_NONE);
    compare(cost, computing, UINT64_C(102400) * (32 * 4 * 3 + 32 * 4 * 32 + 6400) - computing,
            28672 * 4 * 4 + 153600);
    /* Coded weights travel as they are stored. */
    CHECK_EQUAL(nm_encoded_call_cost(&with_tcm, words, sizeof words / 4, 4, 8, 5000, &cost),
                NEUTRON_NONE);
    compare(cost, computing, UINT64_C(102400) * (32 * 4 * 3 + 32 * 4 * 32 + 5000) - computing,
            28672 * 4 * 4 + 153600);
    for (uint32_t at = 0; at < NK_CONV2D_OPERANDS; at++)
        code.operands[at].region = NEUTRON_REGION_TCM;
    memcpy(words, &code, sizeof code);
    CHECK_EQUAL(nm_encoded_call_cost(&with_tcm, words, sizeof words / 4, 4, 8, 0, &cost),
                NEUTRON_NONE);
    compare(cost, computing, 0, 28672 * 4 * 4 + 153600);

    CHECK_EQUAL(nm_encoded_call_cost(NULL, words, sizeof words / 4, 4, 8, 0, &cost),
                NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(nm_encoded_call_cost(t, words, sizeof words / 4 - 1, 4, 8, 0, &cost),
                NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(nm_encoded_call_cost(t, words, 3, 4, 8, 0, &cost), NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(nm_encoded_call_cost(t, words, sizeof words / 4, 4, 33, 0, &cost),
                NEUTRON_ERROR_OPERAND);
    CHECK_EQUAL(nm_encoded_call_cost(t, words, sizeof words / 4, -1, 3, 0, &cost),
                NEUTRON_ERROR_OPERAND);
    code.call.kernel = NEUTRON_KERNEL_LIMIT;
    memcpy(words, &code, sizeof code);
    CHECK_EQUAL(nm_encoded_call_cost(t, words, sizeof words / 4, 4, 8, 0, &cost),
                NEUTRON_ERROR_KERNEL_MISSING);
}

static void recurrent(const nm_target *t) {
    /* 4096 bytes of weights are 64 blocks of 8 x 8; their loading takes longer, in each of three
     * steps. */
    nm_work w = {.formula = NEUTRON_COST_RECURRENT,
                 .batch = 1,
                 .rows = 3,
                 .width = 1,
                 .channels = 16,
                 .weight_bytes = 4096,
                 .moved_bytes = 48};
    compare(nm_call_cost(t, &w), UINT64_C(1275) * 64 * 3,
            (UINT64_C(478) * 4096 - 1275 * 64) * 3 + 128 * 48, 28672 * 3 + 153600);
    /* Thirty sequences at once hide it. */
    w.width = 30;
    compare(nm_call_cost(t, &w), UINT64_C(1275) * 64 * 30 * 3, 128 * 48, 28672 * 3 + 153600);
}

int main(void) {
    const nm_target *t = &array;
    CHECK(nm_target_find("imxrt700") != NULL);
    CHECK(nm_target_find("imxrt701") == NULL);
    CHECK(nm_target_find(NULL) == NULL);
    convolution(t);
    coded_weights(t);
    grouped_convolution(t);
    cores_share_the_channels();
    lanes(t);
    fully_connected(t);
    moved_bytes(t);
    product_of_activations(t);
    copies_and_rounding(t);
    nothing_overflows(t);
    encoded_call(t);
    recurrent(&array);
    return check_result();
}
