/* Handles that were given back are refused by every function, without a look at memory that is
 * gone: the address sanitizer watches. */
#include <stdlib.h>

#include "build.h"

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                nk_call *call) = {[KERNEL] = add_one};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

enum { MANY = 600 }; /* more than two chunks of the table */

static _Alignas(16) uint8_t input[IMAGE], output[IMAGE], scratch[SCRATCH];
static const void *inputs[] = {input};
static void *outputs[] = {output, scratch, NULL, NULL};
static NeutronDataConfig data = {inputs, outputs, NULL, NULL};

static NeutronModelHandle prepare(const block *b) {
    NeutronModelHandle model = NULL;
    const NeutronModelConfig config = config_of(b);
    CHECK_EQUAL(neutronModelPrepareChecked(&config, &b->sizes, &model), NEUTRON_NONE);
    return model;
}

static void check_stale(NeutronModelHandle model) {
    const NeutronError stale = NEUTRON_ERROR_STALE_HANDLE;
    NeutronModelInfo info;
    NeutronTensorInfo tensor;
    NeutronTraceConfig trace = {0, NULL, 0};
    const char *text;
    const void *bytes;
    size_t size;
    uint64_t cycles;
    bool ready;
    CHECK_EQUAL(neutronModelUnprepare(model), stale);
    CHECK_EQUAL(neutronRunBlocking(model, &data), stale);
    CHECK_EQUAL(neutronRunNonBlocking(model, &data), stale);
    CHECK_EQUAL(neutronWait(model, NULL), stale);
    CHECK_EQUAL(neutronIsReady(model, &ready), stale);
    CHECK_EQUAL(neutronDataSetup(model, &data), stale);
    CHECK_EQUAL(neutronModelGetInfo(model, &info), stale);
    CHECK_EQUAL(neutronModelGetTensor(model, 0, &tensor), stale);
    CHECK_EQUAL(neutronSetTrace(model, &trace), stale);
    CHECK_EQUAL(neutronGetTrace(model, &text, &size), stale);
    CHECK_EQUAL(neutronSetEventSink(model, NULL, NULL), stale);
    CHECK_EQUAL(neutronSetThreads(model, 1), stale);
    CHECK_EQUAL(neutronSetFill(model, 0), stale);
    CHECK_EQUAL(neutronGetTcm(model, &bytes, &size), stale);
    CHECK_EQUAL(neutronGetCycles(model, &cycles), stale);
    CHECK_TEXT(neutronModelErrorDetail(model), "");
}

/* The next model takes the same place of the table, and perhaps the same memory. */
static void given_back(const block *b) {
    const NeutronModelHandle first = prepare(b);
    CHECK_EQUAL(neutronModelUnprepare(first), NEUTRON_NONE);
    check_stale(first);
    const NeutronModelHandle second = prepare(b);
    CHECK(second != first);
    check_stale(first);
    CHECK_EQUAL(neutronRunBlocking(second, &data), NEUTRON_NONE);
    CHECK_EQUAL(neutronModelUnprepare(second), NEUTRON_NONE);
    check_stale(second);
}

static void callers_memory(const block *b) {
    NeutronModelHandle model = NULL;
    const NeutronModelConfig config = config_of(b);
    const size_t size = neutronGetModelContextSize(b->microcode, b->size);
    void *context = neutronMemAlloc(16, size);
    CHECK_EQUAL(neutronModelPrepareIn(context, size, &config, &b->sizes, &model), NEUTRON_NONE);
    CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
    neutronMemFree(context);
    check_stale(model);
}

static void never_a_handle(void) {
    int anything = 0;
    check_stale((NeutronModelHandle)(void *)&anything);
    check_stale((NeutronModelHandle)(uintptr_t)-1);
    check_stale((NeutronModelHandle)(uintptr_t)1);
}

static void many(const block *b) {
    static NeutronModelHandle models[MANY];
    for (int at = 0; at < MANY; at++) models[at] = prepare(b);
    for (int at = 0; at < MANY; at += 2)
        CHECK_EQUAL(neutronModelUnprepare(models[at]), NEUTRON_NONE);
    for (int at = 0; at < MANY; at++) {
        CHECK_EQUAL(neutronRunBlocking(models[at], &data),
                    at % 2 ? NEUTRON_NONE : NEUTRON_ERROR_STALE_HANDLE);
    }
    for (int at = 1; at < MANY; at += 2)
        CHECK_EQUAL(neutronModelUnprepare(models[at]), NEUTRON_NONE);
}

/* A sink that tries to give back the model it is called for. */
static void give_back(void *context, const NeutronEvent *event) {
    (void)event;
    CHECK_EQUAL(neutronModelUnprepare(context), NEUTRON_ERROR_BUSY);
    CHECK_EQUAL(neutronRunBlocking(context, &data), NEUTRON_ERROR_BUSY);
    CHECK_EQUAL(neutronWait(context, NULL), NEUTRON_ERROR_BUSY);
}

static void inside_a_run(const block *b) {
    const NeutronModelHandle model = prepare(b);
    CHECK_EQUAL(neutronSetEventSink(model, give_back, model), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
}

int main(void) {
    block b;
    start(&b);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    finish(&b, 1);
    given_back(&b);
    callers_memory(&b);
    never_a_handle();
    many(&b);
    inside_a_run(&b);
    return check_result();
}
