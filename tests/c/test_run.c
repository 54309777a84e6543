#include "build.h"

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                nk_call *call) = {[KERNEL] = add_one};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

static _Alignas(16) uint8_t input[IMAGE], output[IMAGE], scratch[SCRATCH], profile[64],
    other[IMAGE + 1];
static const void *inputs[] = {input};
static void *outputs[] = {output, scratch, profile, NULL};
static NeutronDataConfig data = {inputs, outputs, NULL, NULL};
static NeutronEvent events[16];
static uint32_t event_count;

static void keep(void *context, const NeutronEvent *event) {
    CHECK(context == &event_count);
    if (event_count < 16) events[event_count++] = *event;
}

static NeutronModelHandle prepare(const block *b, uint32_t timeout) {
    NeutronModelHandle model = NULL;
    NeutronModelConfig config = config_of(b);
    config.timeoutSeconds = timeout;
    CHECK_EQUAL(neutronModelPrepareChecked(&config, &b->sizes, &model), NEUTRON_NONE);
    for (int at = 0; at < IMAGE; at++) input[at] = (uint8_t)at;
    memset(output, 0xEE, sizeof output);
    memset(scratch, 0xEE, sizeof scratch);
    event_count = 0;
    neutronSetEventSink(model, keep, &event_count);
    CHECK_EQUAL(neutronSetFill(model, 0xEE), NEUTRON_NONE);
    return model;
}

static void simple(block *b) {
    start(b);
    append_call(b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    finish(b, 1);
}

static void one_call(void) {
    block b;
    uint64_t cycles = 0;
    NeutronModelInfo info;
    NeutronTensorInfo tensor;
    simple(&b);
    NeutronModelHandle model = prepare(&b, 0);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    for (int at = 0; at < IMAGE; at++) CHECK_EQUAL(output[at], at + 1);
    CHECK_EQUAL(event_count, 1);
    CHECK_EQUAL(events[0].tag, 7);
    CHECK_EQUAL(events[0].rows, 4);
    CHECK_EQUAL(events[0].macs, IMAGE * 2); /* one tap of two channels for each output */
    CHECK_EQUAL(events[0].bytes, 2 * IMAGE + 16 + 16);
    CHECK_EQUAL(neutronGetCycles(model, &cycles), NEUTRON_NONE);
    CHECK_EQUAL(cycles, events[0].end);
    CHECK(cycles > 150);
    CHECK_EQUAL(neutronModelGetInfo(model, &info), NEUTRON_NONE);
    CHECK_TEXT(info.target, "imxrt700");
    CHECK_EQUAL(info.scratchBytes, SCRATCH);
    CHECK_EQUAL(info.calls, 1);
    CHECK_EQUAL(neutronModelGetTensor(model, 1, &tensor), NEUTRON_NONE);
    CHECK_EQUAL(tensor.isOutput, 1);
    CHECK_EQUAL(tensor.bytes, IMAGE);
    CHECK_EQUAL(neutronModelGetTensor(model, 2, &tensor), NEUTRON_ERROR_ROW_RANGE);
    CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
}

/* Two calls through a ring of two rows, the second a row behind: the same body fills, works and
 * drains. */
static void loop_through_a_ring(void) {
    block b;
    start(&b);
    append_loop(&b, 5, 2 * CALL_BYTES / 4);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_SCRATCH, 0, 2), 0, 1,
                1);
    append_call(&b, image(NEUTRON_REGION_SCRATCH, 0, 2), image(NEUTRON_REGION_OUTPUT, 0, 4), -1, 1,
                1);
    finish(&b, 10);
    NeutronModelHandle model = prepare(&b, 0);
    for (int twice = 0; twice < 2; twice++) {
        event_count = 0;
        CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
        for (int at = 0; at < IMAGE; at++) CHECK_EQUAL(output[at], at + 2);
        for (int at = 16; at < SCRATCH; at++) CHECK_EQUAL(scratch[at], 0xEE);
        CHECK_EQUAL(event_count, 8); /* the empty first and last calls do not run */
        for (uint32_t at = 1; at < event_count; at++)
            CHECK_EQUAL(events[at].start, events[at - 1].end);
    }
    neutronModelUnprepare(model);
}

static uint32_t copies_seen, waits_seen;

static void count_copy(void *dst, void *src, uint32_t size, uint32_t channel) {
    CHECK_EQUAL(channel, 3);
    memmove(dst, src, size);
    copies_seen++;
}

static void count_wait(uint32_t channel) {
    CHECK_EQUAL(channel, 3);
    waits_seen++;
}

static void copies(const char *target, int overlaps) {
    block b;
    start(&b);
    if (overlaps) {
        b.identity = (NeutronIdentityRecord){.target = "imx95",
                                             .format_version = 1,
                                             .hw_version = 2,
                                             .cores = 4,
                                             .units = 16,
                                             .length = 16};
        const uint16_t list[] = {1, 0, KERNEL};
        memcpy(b.kernels, list, sizeof list);
        b.header.kernels_bytes = sizeof list;
    }
    append_copy(
        &b, (NeutronDmaRecord){3, NEUTRON_REGION_INPUT, 0, NEUTRON_REGION_SCRATCH, 0, 0, IMAGE});
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_SCRATCH, 32, 4), 0, 1,
                0);
    append_wait(&b, 3);
    append_call(&b, image(NEUTRON_REGION_SCRATCH, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4,
                0);
    finish(&b, 2);
    NeutronModelHandle model = prepare(&b, 0);
    const NeutronConfig config = {count_copy, count_wait};
    CHECK_EQUAL(neutronSetConfig(&config), NEUTRON_NONE);
    copies_seen = waits_seen = 0;
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    for (int at = 0; at < IMAGE; at++) CHECK_EQUAL(output[at], at + 1);
    CHECK_EQUAL(copies_seen, 1);
    CHECK_EQUAL(waits_seen, 1);
    CHECK_EQUAL(event_count, 3);
    const nm_cost cost = nm_dma_cost(nm_target_find(target), IMAGE, 0);
    CHECK_EQUAL(events[0].opcode, NEUTRON_OPCODE_DMA);
    CHECK_EQUAL(events[0].end, nm_cycles(&cost));
    CHECK_EQUAL(events[1].start, overlaps ? 0 : events[0].end);
    const uint64_t both = events[0].end > events[1].end ? events[0].end : events[1].end;
    CHECK_EQUAL(events[2].start, both);
    neutronModelUnprepare(model);
    CHECK_EQUAL(neutronInit(), NEUTRON_NONE);
}

static void trace_and_profile(void) {
    block b;
    char trace[200], expected[100];
    const char *text = NULL;
    size_t size = 0;
    uint32_t words[8];
    start(&b);
    b.header.flags = NEUTRON_FLAG_PROFILING;
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 2, 0);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 2, 2, 0);
    finish(&b, 2);
    const uint32_t layout[6] = {SCRATCH, 0x80000000u | 24, 0, 0, 1,
                                1}; /* room for one record and a half */
    memcpy(b.header.layout, layout, sizeof layout);
    seal(&b);
    NeutronModelHandle model = prepare(&b, 0);
    memset(profile, 0xEE, sizeof profile);
    const NeutronTraceConfig config = {1, trace, sizeof trace}, odd = {2, trace, sizeof trace};
    CHECK_EQUAL(neutronSetTrace(model, &odd), NEUTRON_ERROR_TRACE_CONFIG);
    CHECK_EQUAL(neutronSetTrace(model, &config), NEUTRON_NONE);
    CHECK_EQUAL(neutronGetTrace(model, &text, &size), NEUTRON_ERROR_TRACE_NOT_RUN);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(neutronGetTrace(model, &text, &size), NEUTRON_NONE);
    const unsigned long long once = events[0].end;
    snprintf(expected, sizeof expected,
             "conv2d node 7 rows 0-1 cycles 0-%llu\nconv2d node 7 rows 2-3 cycles %llu-%llu\n",
             once, once, 2 * once);
    CHECK_TEXT(text, expected);
    CHECK_EQUAL(size, strlen(expected));
    memcpy(words, profile, sizeof words);
    CHECK_EQUAL(words[0], 1 | 6 << 8 | KERNEL << 16);
    CHECK_EQUAL(words[1], 0);
    CHECK_EQUAL(words[2], 2 | 6 << 8 | KERNEL << 16);
    CHECK_EQUAL(words[3], once);
    CHECK_EQUAL(words[4], 0);
    CHECK_EQUAL(words[6], 0xEEEEEEEE);
    outputs[2] = NULL; /* without a buffer there is no profile */
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    outputs[2] = profile;
    neutronModelUnprepare(model);
}

static void wrong_buffers(void) {
    block b;
    simple(&b);
    NeutronModelHandle model = prepare(&b, 0);
    CHECK_EQUAL(neutronRunBlocking(model, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    inputs[0] = other + 1;
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_ERROR_ALIGNMENT);
    CHECK_TEXT(neutronModelErrorDetail(model), "input 0, of 32 bytes");
    inputs[0] = NULL;
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_ERROR_ARGUMENT_NULL);
    inputs[0] = input;
    outputs[1] = NULL;
    CHECK_EQUAL(neutronDataSetup(model, &data), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_TEXT(neutronModelErrorDetail(model), "scratch 0, of 64 bytes");
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_ERROR_ARGUMENT_NULL);
    outputs[1] = scratch;
    CHECK_EQUAL(neutronDataSetup(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_TEXT(neutronModelErrorDetail(model), "");
    CHECK_EQUAL(neutronRunBlocking(NULL, &data), NEUTRON_ERROR_NULL_HANDLE);
    neutronModelUnprepare(model);
}

static void caller_memory(void) {
    block b;
    simple(&b);
    const NeutronModelConfig config = config_of(&b);
    NeutronModelHandle model = NULL;
    const size_t size = neutronGetModelContextSize(b.microcode, b.size);
    CHECK(size >= sizeof(struct NeutronModel) && size < 2048);
    CHECK_EQUAL(neutronGetModelContextSize(b.microcode, 127), 0);
    uint8_t *context = neutronMemAlloc(16, size);
    CHECK_EQUAL(neutronModelPrepareIn(context, size - 1, &config, &b.sizes, &model),
                NEUTRON_ERROR_CONTEXT_TOO_SMALL);
    CHECK_EQUAL(neutronModelPrepareIn(context + 8, size, &config, &b.sizes, &model),
                NEUTRON_ERROR_ALIGNMENT);
    CHECK_EQUAL(neutronModelPrepareIn(context, size, &config, &b.sizes, &model), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_ERROR_STALE_HANDLE);
    neutronMemFree(context);
    CHECK_EQUAL(neutronModelPrepare(&config, &model), NEUTRON_NONE);
    CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
}

/* Return the error of a run whose kernel has `parameter`, with which build.h's kernel fails, and
 * check its detail. */
static NeutronError run_failing(uint32_t parameter, const char *detail) {
    block b;
    simple(&b);
    memcpy(b.microcode + CODE_AT + 24 + 5 * 40, &parameter, sizeof parameter);
    seal(&b);
    NeutronModelHandle model = prepare(&b, 0);
    const NeutronError error = neutronRunBlocking(model, &data);
    CHECK_TEXT(neutronModelErrorDetail(model), detail);
    neutronModelUnprepare(model);
    return error;
}

static void failing_kernels(void) {
    CHECK_EQUAL(run_failing(99, "byte 272: conv2d: asked to fail"), NEUTRON_ERROR_KERNEL_FAILED);
    CHECK_EQUAL(run_failing(98, "byte 272: index -3, where 0 to 3 exist"), NEUTRON_ERROR_INDEX);
    CHECK_EQUAL(run_failing(97, "byte 272: index 1099511627776, where 0 to 3 exist"),
                NEUTRON_ERROR_INDEX);
}

int main(void) {
    one_call();
    loop_through_a_ring();
    copies("imxrt700", 0);
    copies("imx95", 1);
    trace_and_profile();
    wrong_buffers();
    caller_memory();
    failing_kernels();
    return check_result();
}
