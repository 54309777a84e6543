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
    } else if (run % 4) {
        error = neutronRunInTurn(model, data);
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
    neutronTurnEnd();
    u->wrong += neutronModelUnprepare(model) != NEUTRON_NONE;
    return NULL;
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
    return check_result();
}
