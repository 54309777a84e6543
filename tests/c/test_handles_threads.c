/* Several threads at one handle: of two starts, waits or ends at once one wins and the other is
 * told; the thread sanitizer watches. */
#define _GNU_SOURCE /* barriers */
#include <pthread.h>
#include <stdatomic.h>

#include "build.h"

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                nk_call *call) = {[KERNEL] = add_one};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

enum { THREADS = 4, TURNS = 200 };

typedef struct {
    _Alignas(16) uint8_t input[IMAGE], output[IMAGE], scratch[SCRATCH];
    const void *inputs[1];
    void *outputs[4];
    NeutronDataConfig data;
} buffers;

typedef struct {
    NeutronModelHandle model;
    buffers own;
    uint32_t started, waited, ran, ended, wrong;
} user;

static pthread_barrier_t together;

static void fill(buffers *b) {
    memset(b, 0, sizeof *b);
    b->inputs[0] = b->input;
    b->outputs[0] = b->output;
    b->outputs[1] = b->scratch;
    b->data = (NeutronDataConfig){b->inputs, b->outputs, NULL, NULL};
}

static void count(NeutronError error, uint32_t *won, uint32_t *wrong) {
    if (error == NEUTRON_NONE) ++*won;
    else if (error != NEUTRON_ERROR_BUSY && error != NEUTRON_ERROR_NOT_STARTED &&
             error != NEUTRON_ERROR_STALE_HANDLE)
        ++*wrong;
}

/* Starts and waits without knowing of the others. */
static void *start_and_wait(void *argument) {
    user *u = argument;
    bool ready;
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_barrier_wait(&together);
        count(neutronRunNonBlocking(u->model, &u->own.data), &u->started, &u->wrong);
        (void)neutronIsReady(u->model, &ready);
        pthread_barrier_wait(&together);
        count(neutronWait(u->model, NULL), &u->waited, &u->wrong);
        pthread_barrier_wait(&together);
        count(neutronRunBlocking(u->model, &u->own.data), &u->ran, &u->wrong);
        (void)neutronSetThreads(u->model, 1 + turn % 2);
        (void)neutronModelErrorDetail(u->model);
    }
    pthread_barrier_wait(&together);
    count(neutronModelUnprepare(u->model), &u->ended, &u->wrong);
    pthread_barrier_wait(&together);
    count(neutronModelUnprepare(u->model), &u->ended, &u->wrong);
    return NULL;
}

int main(void) {
    static user users[THREADS];
    pthread_t ids[THREADS];
    NeutronModelHandle model = NULL;
    uint32_t started = 0, waited = 0, ran = 0, ended = 0;
    block b;
    start(&b);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    finish(&b, 1);
    const NeutronModelConfig config = config_of(&b);
    CHECK_EQUAL(neutronModelPrepareChecked(&config, &b.sizes, &model), NEUTRON_NONE);
    pthread_barrier_init(&together, NULL, THREADS);
    for (int at = 0; at < THREADS; at++) {
        fill(&users[at].own);
        users[at].model = model;
        pthread_create(&ids[at], NULL, start_and_wait, &users[at]);
    }
    for (int at = 0; at < THREADS; at++) {
        pthread_join(ids[at], NULL);
        CHECK_EQUAL(users[at].wrong, 0);
        started += users[at].started;
        waited += users[at].waited;
        ran += users[at].ran;
        ended += users[at].ended;
    }
    /* One start and one wait win each turn; a blocking run wins unless a setting is being changed.
     */
    CHECK_EQUAL(started, TURNS);
    CHECK_EQUAL(waited, TURNS);
    CHECK(ran >= TURNS);
    /* Ends that meet may all be told BUSY; then the model is still there. */
    count(neutronModelUnprepare(model), &ended, &users[0].wrong);
    CHECK_EQUAL(ended, 1);
    pthread_barrier_destroy(&together);
    return check_result();
}
