/* Non-blocking runs, time-outs and suspension, with a kernel that can be held up and a clock the
 * test sets. */
#include <pthread.h>

#include "build.h"

static atomic_int gate, inside;
static _Atomic uint64_t now;

uint64_t neutronClockMilliseconds(void) { return atomic_load(&now); }

static int32_t gated(uint32_t verb, nk_call *call) {
    if (verb == NK_RUN) {
        atomic_store(&inside, 1);
        while (!atomic_load(&gate)) {}
        atomic_fetch_add(&now, 600);
    }
    return add_one(verb, call);
}

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb, nk_call *call) = {[KERNEL] = gated};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

static _Alignas(16) uint8_t input[IMAGE];

typedef struct {
    _Alignas(16) uint8_t output[IMAGE], scratch[SCRATCH];
    const void *inputs[1];
    void *outputs[4];
    NeutronDataConfig data;
} buffers;

static void fill(buffers *r) {
    memset(r, 0, sizeof *r);
    r->inputs[0] = input;
    r->outputs[0] = r->output;
    r->outputs[1] = r->scratch;
    r->data = (NeutronDataConfig){r->inputs, r->outputs, NULL, NULL};
}

static NeutronModelHandle prepare(const block *b, uint32_t timeout) {
    NeutronModelHandle model = NULL;
    NeutronModelConfig config = config_of(b);
    config.timeoutSeconds = timeout;
    CHECK_EQUAL(neutronModelPrepareChecked(&config, &b->sizes, &model), NEUTRON_NONE);
    return model;
}

static void non_blocking(const block *b) {
    buffers r, other;
    bool ready = true;
    uint64_t cycles;
    fill(&r);
    fill(&other);
    NeutronModelHandle model = prepare(b, 0);
    CHECK_EQUAL(neutronIsReady(model, &ready), NEUTRON_ERROR_NOT_STARTED);
    CHECK_EQUAL(neutronWait(model, &r.data), NEUTRON_ERROR_NOT_STARTED);
    atomic_store(&gate, 0);
    atomic_store(&inside, 0);
    CHECK_EQUAL(neutronRunNonBlocking(model, &r.data), NEUTRON_NONE);
    while (!atomic_load(&inside)) {}
    CHECK_EQUAL(neutronIsReady(model, &ready), NEUTRON_NONE);
    CHECK(!ready);
    CHECK_EQUAL(neutronRunNonBlocking(model, &r.data), NEUTRON_ERROR_BUSY);
    CHECK_EQUAL(neutronRunBlocking(model, &r.data), NEUTRON_ERROR_BUSY);
    CHECK_EQUAL(neutronGetCycles(model, &cycles), NEUTRON_ERROR_BUSY);
    CHECK_TEXT(neutronModelErrorDetail(model), "");
    CHECK_EQUAL(neutronWait(model, &other.data), NEUTRON_ERROR_DATA_CHANGED);
    atomic_store(&gate, 1);
    while (!ready) CHECK_EQUAL(neutronIsReady(model, &ready), NEUTRON_NONE);
    CHECK_EQUAL(neutronWait(model, &r.data), NEUTRON_NONE);
    for (int at = 0; at < IMAGE; at++) CHECK_EQUAL(r.output[at], 1);
    CHECK_EQUAL(neutronRunNonBlocking(model, &r.data), NEUTRON_NONE);
    CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE); /* waits for the run */
}

static void two_models_at_once(const block *b) {
    buffers r[2];
    NeutronModelHandle models[2];
    atomic_store(&gate, 0);
    for (int at = 0; at < 2; at++) {
        fill(&r[at]);
        models[at] = prepare(b, 0);
        CHECK_EQUAL(neutronRunNonBlocking(models[at], &r[at].data), NEUTRON_NONE);
    }
    atomic_store(&gate, 1);
    for (int at = 0; at < 2; at++) {
        CHECK_EQUAL(neutronWait(models[at], NULL), NEUTRON_NONE);
        CHECK_EQUAL(r[at].output[IMAGE - 1], 1);
        neutronModelUnprepare(models[at]);
    }
}

static void timeouts(const block *b) {
    buffers r;
    fill(&r);
    atomic_store(&gate, 1); /* each call takes 600 ms of the test's clock */
    NeutronModelHandle model = prepare(b, 1);
    CHECK_EQUAL(neutronRunBlocking(model, &r.data), NEUTRON_ERROR_TIMEOUT);
    CHECK(strstr(neutronModelErrorDetail(model), "stopped before") != NULL);
    neutronModelUnprepare(model);
    model = prepare(b, 2);
    CHECK_EQUAL(neutronRunBlocking(model, &r.data), NEUTRON_NONE);
    neutronModelUnprepare(model);
}

/* neutronWait hands over what stopped a run that nobody watched; the handle then works as before.
 */
static void stopped_in_flight(const block *b) {
    buffers r;
    bool ready = false;
    fill(&r);
    atomic_store(&gate, 1);
    NeutronModelHandle model = prepare(b, 1);
    CHECK_EQUAL(neutronRunNonBlocking(model, &r.data), NEUTRON_NONE);
    while (!ready) CHECK_EQUAL(neutronIsReady(model, &ready), NEUTRON_NONE);
    CHECK_EQUAL(neutronWait(model, &r.data), NEUTRON_ERROR_TIMEOUT);
    CHECK(strstr(neutronModelErrorDetail(model), "stopped before") != NULL);
    neutronModelUnprepare(model);

    model = prepare(b, 0);
    memset(r.output, 0, sizeof r.output);
    atomic_store(&gate, 0);
    atomic_store(&inside, 0);
    CHECK_EQUAL(neutronRunNonBlocking(model, &r.data), NEUTRON_NONE);
    while (!atomic_load(&inside)) {}
    CHECK_EQUAL(neutronSuspend(),
                NEUTRON_NONE); /* inside the first of two calls, which is finished */
    atomic_store(&gate, 1);
    CHECK_EQUAL(neutronWait(model, &r.data), NEUTRON_ERROR_SUSPENDED);
    CHECK_EQUAL(r.output[0], 1);
    CHECK_EQUAL(r.output[IMAGE - 1], 0);
    CHECK_EQUAL(neutronResume(), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunNonBlocking(model, &r.data), NEUTRON_NONE);
    CHECK_EQUAL(neutronWait(model, &r.data), NEUTRON_NONE);
    CHECK_EQUAL(r.output[IMAGE - 1], 1);
    neutronModelUnprepare(model);
}

static void suspension(const block *b) {
    buffers r;
    fill(&r);
    NeutronModelHandle model = prepare(b, 0);
    CHECK_EQUAL(neutronSuspend(), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(model, &r.data), NEUTRON_ERROR_SUSPENDED);
    CHECK_EQUAL(neutronRunNonBlocking(model, &r.data), NEUTRON_ERROR_SUSPENDED);
    CHECK_EQUAL(neutronResume(), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(model, &r.data), NEUTRON_NONE);
    neutronModelUnprepare(model);
}

int main(void) {
    block b;
    start(&b);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 2, 0);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 2, 2, 0);
    finish(&b, 2);
    non_blocking(&b);
    two_models_at_once(&b);
    timeouts(&b);
    suspension(&b);
    stopped_in_flight(&b);
    return check_result();
}
