/* Several threads on separate handles, blocking and not, with and without threads of their own:
 * what the thread sanitizer is for. */
#include <pthread.h>
#include <stdlib.h>

#include "build.h"

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                nk_call *call) = {[KERNEL] = add_one};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

enum { THREADS = 6, RUNS = 60 };

static block code;

typedef struct {
    _Alignas(16) uint8_t input[IMAGE], output[IMAGE], scratch[SCRATCH];
    uint32_t number, wrong;
    uint64_t cycles;
} user;

static void count_event(void *context, const NeutronEvent *event) {
    *(uint64_t *)context += event->end - event->start;
}

static uint32_t run_once(user *u, NeutronModelHandle model, NeutronDataConfig *data, uint32_t run) {
    uint64_t cycles = 0;
    bool ready = false;
    for (int at = 0; at < IMAGE; at++) u->input[at] = (uint8_t)(at + (int)(u->number * 31 + run));
    memset(u->output, 0, sizeof u->output);
    u->cycles = 0;
    NeutronError error = NEUTRON_NONE;
    if (run % 2) {
        error = neutronRunNonBlocking(model, data);
        while (error == NEUTRON_NONE && !ready) error = neutronIsReady(model, &ready);
        if (error == NEUTRON_NONE) error = neutronWait(model, data);
    } else {
        error = neutronRunBlocking(model, data);
    }
    if (error == NEUTRON_NONE) error = neutronGetCycles(model, &cycles);
    uint32_t wrong = error != NEUTRON_NONE || cycles != u->cycles;
    for (int at = 0; at < IMAGE; at++) wrong += u->output[at] != (uint8_t)(u->input[at] + 2);
    return wrong;
}

static void *use(void *argument) {
    user *u = argument;
    const void *inputs[1] = {u->input};
    void *outputs[4] = {u->output, u->scratch, NULL, NULL};
    NeutronDataConfig data = {inputs, outputs, NULL, NULL};
    const NeutronModelConfig config = config_of(&code);
    NeutronModelHandle model = NULL;
    u->wrong += neutronModelPrepareChecked(&config, &code.sizes, &model) != NEUTRON_NONE;
    if (model == NULL) return NULL;
    u->wrong += neutronSetThreads(model, 1 + u->number % 3) != NEUTRON_NONE;
    u->wrong += neutronSetEventSink(model, count_event, &u->cycles) != NEUTRON_NONE;
    for (uint32_t run = 0; run < RUNS; run++) u->wrong += run_once(u, model, &data, run);
    u->wrong += neutronModelUnprepare(model) != NEUTRON_NONE;
    return NULL;
}

enum { HANDLES = 3, SAMPLES = 50 };

/* Samples that several handles take give what each gives alone; `bad` has a buffer less. */
static void each_sample_once(size_t handles, size_t bad) {
    static uint8_t inputs[SAMPLES][IMAGE] __attribute__((aligned(16))),
        outputs[SAMPLES][IMAGE] __attribute__((aligned(16))),
        scratch[HANDLES][SCRATCH] __attribute__((aligned(16)));
    const void *from[SAMPLES][1];
    void *to[HANDLES][SAMPLES][4];
    NeutronDataConfig data[HANDLES][SAMPLES];
    NeutronModelHandle models[HANDLES];
    const NeutronModelConfig config = config_of(&code);
    size_t done = 0;
    memset(outputs, 0, sizeof outputs);
    for (size_t h = 0; h < handles; h++) {
        CHECK_EQUAL(neutronModelPrepareChecked(&config, &code.sizes, &models[h]), NEUTRON_NONE);
        for (size_t s = 0; s < SAMPLES; s++) {
            memset(inputs[s], (int)s, IMAGE);
            from[s][0] = s == bad ? NULL : inputs[s];
            to[h][s][0] = outputs[s], to[h][s][1] = scratch[h];
            to[h][s][2] = to[h][s][3] = NULL;
            ((NeutronDataConfig *)data)[h * SAMPLES + s] =
                (NeutronDataConfig){from[s], to[h][s], NULL, NULL};
        }
    }
    const NeutronError error =
        neutronRunEach(models, handles, (const NeutronDataConfig *)data, SAMPLES, &done);
    CHECK_EQUAL(error == NEUTRON_NONE, bad >= SAMPLES);
    CHECK_EQUAL(done, bad < SAMPLES ? bad : SAMPLES);
    for (size_t s = 0; s < done; s++) CHECK_EQUAL(outputs[s][IMAGE - 1], (uint8_t)(s + 2));
    for (size_t h = 0; h < handles; h++)
        CHECK_EQUAL(neutronModelUnprepare(models[h]), NEUTRON_NONE);
}

static void samples_are_shared(void) {
    size_t done = 7;
    NeutronModelHandle none = NULL;
    const NeutronDataConfig data = {NULL, NULL, NULL, NULL};
    for (size_t handles = 1; handles <= HANDLES; handles++) {
        each_sample_once(handles, SAMPLES);
        each_sample_once(handles, 0);
        each_sample_once(handles, 29);
    }
    CHECK_EQUAL(neutronRunEach(&none, 1, &data, 0, &done), NEUTRON_NONE);
    CHECK_EQUAL(done, 0);
    CHECK(neutronRunEach(&none, 1, &data, 1, &done) != NEUTRON_NONE);
    CHECK_EQUAL(neutronRunEach(NULL, 1, &data, 1, &done), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronRunEach(&none, 0, &data, 1, &done), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronRunEach(&none, 1, NULL, 1, &done), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronRunEach(&none, 1, &data, 1, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
}

int main(void) {
    static user users[THREADS];
    pthread_t ids[THREADS];
    start(&code);
    append_call(&code, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_SCRATCH, 0, 4), 0, 4,
                0);
    append_call(&code, image(NEUTRON_REGION_SCRATCH, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0,
                4, 0);
    const int32_t window[2] = {4096, 4096}; /* counts as work, so that threads share the rows */
    for (uint32_t call = 0; call < 2; call++) {
        memcpy(code.microcode + CODE_AT + call * CALL_BYTES + 24 + 5 * sizeof(NeutronOperandRecord),
               window, sizeof window);
    }
    finish(&code, 2);
    for (uint32_t at = 0; at < THREADS; at++) {
        users[at].number = at;
        CHECK_EQUAL(pthread_create(&ids[at], NULL, use, &users[at]), 0);
    }
    for (uint32_t at = 0; at < THREADS; at++) {
        pthread_join(ids[at], NULL);
        CHECK_EQUAL(users[at].wrong, 0);
    }
    samples_are_shared();
    return check_result();
}
