/* The driver's API, function by function, where the other tests do not reach: memory, callbacks,
 * several models at once, time-outs inside a call, limits on work, and what happens when the system
 * refuses memory or threads. */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include <pthread.h>
#include <stdlib.h>

#include "build.h"
#include "thread_pool.h"

/* The linker sends the driver's own calls here (tests/c/CMakeLists.txt). */
static int no_memory;
static uint32_t threads_left = UINT32_MAX;

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return no_memory ? NULL : __real_aligned_alloc(alignment, size);
}

int __real_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*work)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*work)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*work)(void *),
                          void *argument) {
    if (threads_left == 0) return 11; /* EAGAIN */
    threads_left--;
    return __real_pthread_create(id, attributes, work, argument);
}

/* A clock that a test sets and every kernel call moves. */
static _Atomic uint64_t now, per_call;
static atomic_uint calls;

uint64_t neutronClockMilliseconds(void) { return atomic_load(&now); }

static int32_t timed(uint32_t verb, nk_call *call) {
    if (verb == NK_RUN) {
        atomic_fetch_add(&calls, 1);
        atomic_fetch_add(&now, atomic_load(&per_call));
    }
    return add_one(verb, call);
}

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb, nk_call *call) = {[KERNEL] = timed};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

enum { PREFETCH = 32 };
static _Alignas(16) uint8_t input[IMAGE], output[IMAGE], scratch[SCRATCH], prefetch[PREFETCH];
static const void *inputs[1] = {input};
static void *outputs[4] = {output, scratch, NULL, NULL};
static NeutronDataConfig data = {inputs, outputs, NULL, prefetch};

static NeutronModelHandle prepare(const block *b, uint32_t timeout) {
    NeutronModelHandle model = NULL;
    NeutronModelConfig config = config_of(b);
    config.timeoutSeconds = timeout;
    CHECK_EQUAL(neutronModelPrepareChecked(&config, &b->sizes, &model), NEUTRON_NONE);
    for (int at = 0; at < IMAGE; at++) input[at] = (uint8_t)at;
    memset(output, 0xEE, sizeof output);
    return model;
}

/* One call over all rows, whose window of `taps` x `taps` only counts as work. */
static void windowed(block *b, int32_t taps) {
    start(b);
    append_call(b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    const int32_t window[2] = {taps, taps};
    memcpy(b->microcode + CODE_AT + 24 + 5 * sizeof(NeutronOperandRecord), window, sizeof window);
    finish(b, 1);
}

static void version(void) {
    CHECK_TEXT(neutronGetSdkVersion(), "openneutron " OPENNEUTRON_VERSION);
}

static void memory(void) {
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        for (size_t size = 0; size < 40; size += 13) {
            uint8_t *bytes = neutronMemAlloc(alignment, size);
            CHECK(bytes != NULL && (uintptr_t)bytes % alignment == 0);
            if (bytes != NULL) memset(bytes, 1, size);
            neutronMemFree(bytes);
        }
    }
    CHECK(neutronMemAlloc(24, 16) == NULL); /* no power of two */
    CHECK(neutronMemAlloc(16, SIZE_MAX) == NULL);
    neutronMemFree(NULL);
}

typedef struct {
    void *target, *source;
    uint32_t bytes, channel, calls_before;
} copy_seen;

static copy_seen copies[8];
static uint32_t copy_count, waits[8], wait_count;

static void record_copy(void *target, void *source, uint32_t bytes, uint32_t channel) {
    copies[copy_count++] = (copy_seen){target, source, bytes, channel, atomic_load(&calls)};
    memcpy(target, source, bytes);
}

static void record_wait(uint32_t channel) { waits[wait_count++] = channel; }

/* Copies, waits and calls in the order of the code, each with its own bytes. */
static void callbacks(void) {
    block b;
    start(&b);
    b.header.layout[1] = PREFETCH;
    b.sizes.prefetch = PREFETCH;
    append_copy(&b, (NeutronDmaRecord){.channel = 2,
                                       .source_region = NEUTRON_REGION_WEIGHTS,
                                       .source_offset = 16,
                                       .target_region = NEUTRON_REGION_PREFETCH,
                                       .target_offset = 8,
                                       .bytes = 12});
    append_copy(&b, (NeutronDmaRecord){.channel = 15,
                                       .source_region = NEUTRON_REGION_INPUT,
                                       .target_region = NEUTRON_REGION_SCRATCH,
                                       .target_offset = 32,
                                       .bytes = IMAGE});
    append_wait(&b, 15);
    append_call(&b, image(NEUTRON_REGION_SCRATCH, 32, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4,
                0);
    append_copy(&b, (NeutronDmaRecord){.channel = 0,
                                       .source_region = NEUTRON_REGION_OUTPUT,
                                       .source_offset = 1,
                                       .target_region = NEUTRON_REGION_SCRATCH,
                                       .bytes = 1});
    append_wait(&b, 2);
    finish(&b, 1);
    NeutronModelHandle model = prepare(&b, 0);
    const NeutronConfig both = {record_copy, record_wait}, alone = {record_copy, NULL},
                        none = {NULL, record_wait};
    CHECK_EQUAL(neutronSetConfig(NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronSetConfig(&none), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronSetConfig(&both), NEUTRON_NONE);
    atomic_store(&calls, 0);
    copy_count = wait_count = 0;
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    const copy_seen expected[] = {{prefetch + 8, b.weights + 16, 12, 2, 0},
                                  {scratch + 32, input, IMAGE, 15, 0},
                                  {scratch, output + 1, 1, 0, 1}};
    CHECK_EQUAL(copy_count, 3);
    for (uint32_t at = 0; at < 3; at++) {
        CHECK(copies[at].target == expected[at].target && copies[at].source == expected[at].source);
        CHECK_EQUAL(copies[at].bytes, expected[at].bytes);
        CHECK_EQUAL(copies[at].channel, expected[at].channel);
        CHECK_EQUAL(copies[at].calls_before, expected[at].calls_before);
    }
    CHECK_EQUAL(wait_count, 2);
    CHECK_EQUAL(waits[0], 15);
    CHECK_EQUAL(waits[1], 2);
    for (int at = 0; at < IMAGE; at++) CHECK_EQUAL(output[at], at + 1);

    CHECK_EQUAL(neutronSetConfig(&alone),
                NEUTRON_NONE); /* copies that are done when the callback returns */
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(copy_count, 6);
    CHECK_EQUAL(wait_count, 2);
    CHECK_EQUAL(neutronDeinit(), NEUTRON_NONE); /* the driver's own copies again */
    memset(scratch, 0, sizeof scratch);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(copy_count, 6);
    CHECK_EQUAL(scratch[32 + 5], 5);
    neutronModelUnprepare(model);
}

/* Models with different code, prepared at once and run in turns, each with its own trace. */
static void several_models(void) {
    enum { MODELS = 5 };
    block blocks[MODELS];
    NeutronModelHandle models[MODELS];
    char traces[MODELS][600];
    for (uint32_t at = 0; at < MODELS; at++) {
        start(&blocks[at]);
        for (uint32_t call = 0; call <= at; call++) {
            const NeutronOperandRecord from =
                call ? image(NEUTRON_REGION_SCRATCH, 0, 4) : image(NEUTRON_REGION_INPUT, 0, 4);
            const int last = call == at;
            append_call(&blocks[at], from,
                        image(last ? NEUTRON_REGION_OUTPUT : NEUTRON_REGION_SCRATCH, 0, 4), 0, 4,
                        0);
        }
        finish(&blocks[at], at + 1);
        models[at] = prepare(&blocks[at], 0);
        const NeutronTraceConfig trace = {1, traces[at], sizeof traces[at]};
        CHECK_EQUAL(neutronSetTrace(models[at], &trace), NEUTRON_NONE);
    }
    for (uint32_t turn = 0; turn < 3 * MODELS; turn++) {
        const uint32_t at = turn * 2 % MODELS;
        const char *text = NULL;
        size_t size = 0, lines = 0;
        CHECK_EQUAL(neutronRunBlocking(models[at], &data), NEUTRON_NONE);
        for (int byte = 0; byte < IMAGE; byte++) CHECK_EQUAL(output[byte], byte + (int)at + 1);
        CHECK_EQUAL(neutronGetTrace(models[at], &text, &size), NEUTRON_NONE);
        for (size_t letter = 0; letter < size; letter++) lines += text[letter] == '\n';
        CHECK_EQUAL(lines, at + 1);
    }
    for (uint32_t at = 0; at < MODELS; at++)
        CHECK_EQUAL(neutronModelUnprepare(models[at]), NEUTRON_NONE);
}

/* A call that takes long stops between two of its rows; without a time-out it is one call. */
static void timeout_inside_a_call(void) {
    block b;
    windowed(&b, 4096); /* 2^28 operations a row: each is looked after by itself */
    atomic_store(&per_call, 600);
    NeutronModelHandle model = prepare(&b, 0);
    atomic_store(&calls, 0);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(calls, 1);
    neutronModelUnprepare(model);

    model = prepare(&b, 1);
    atomic_store(&calls, 0);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_ERROR_TIMEOUT);
    CHECK_TEXT(neutronModelErrorDetail(model),
               "byte 272: stopped before this instruction was done");
    CHECK_EQUAL(calls, 2);
    CHECK_EQUAL(output[15], 16);
    CHECK_EQUAL(output[16], 0); /* cleared, not computed */
    neutronModelUnprepare(model);

    model = prepare(&b, 3);
    atomic_store(&calls, 0);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(calls, 4);
    for (int at = 0; at < IMAGE; at++) CHECK_EQUAL(output[at], at + 1);
    neutronModelUnprepare(model);
    atomic_store(&per_call, 0);
}

static void work_is_bounded(void) {
    block b;
    char detail[200];
    windowed(&b, INT32_MAX);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_CALL_COUNT);
    CHECK_TEXT(detail, "byte 272: conv2d: one row of the output takes more than 2^36 operations");
    windowed(&b, 1 << 14); /* 2^32 operations a row, 2^34 a call */
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_NONE);
    for (uint32_t iterations = 64; iterations <= 65; iterations++) {
        start(&b);
        append_loop(&b, iterations, CALL_BYTES / 4);
        append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4,
                    0);
        const int32_t window[2] = {1 << 14, 1 << 14};
        memcpy(b.microcode + CODE_AT + 12 + 24 + 5 * sizeof(NeutronOperandRecord), window,
               sizeof window);
        finish(&b, iterations);
        const NeutronError error = verdict(&b, detail, sizeof detail);
        CHECK_EQUAL(error, iterations == 64 ? NEUTRON_NONE : NEUTRON_ERROR_CALL_COUNT);
    }
    CHECK_TEXT(detail, "byte 284: one run would execute, compute or move too much");
}

static void refused_memory(void) {
    block b;
    NeutronModelHandle model = NULL;
    windowed(&b, 1);
    const NeutronModelConfig config = config_of(&b);
    no_memory = 1;
    CHECK_EQUAL(neutronModelPrepareChecked(&config, &b.sizes, &model), NEUTRON_ERROR_NO_MEMORY);
    CHECK(model == NULL);
    no_memory = 0;
    model = prepare(&b, 0);
    no_memory = 1;
    CHECK_EQUAL(neutronSetThreads(model, 2), NEUTRON_ERROR_NO_THREAD);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE); /* nothing is needed to run */
    no_memory = 0;
    neutronModelUnprepare(model);
}

static uint32_t threads_of(NeutronModelHandle handle) {
    struct NeutronModel *model = NULL;
    CHECK_EQUAL(nd_enter(handle, &model), NEUTRON_NONE);
    const uint32_t threads = nd_pool_threads(model->pool);
    nd_leave(model);
    return threads;
}

static void refused_threads(void) {
    block b;
    bool ready;
    windowed(&b, 1);
    NeutronModelHandle model = prepare(&b, 0);
    threads_left = 0;
    CHECK_EQUAL(neutronRunNonBlocking(model, &data), NEUTRON_ERROR_NO_THREAD);
    CHECK_EQUAL(neutronIsReady(model, &ready), NEUTRON_ERROR_NOT_STARTED);
    threads_left = 2; /* of three */
    CHECK_EQUAL(neutronSetThreads(model, 4), NEUTRON_ERROR_NO_THREAD);
    threads_left = UINT32_MAX;
    CHECK_EQUAL(threads_of(model), 1);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    neutronModelUnprepare(model);
}

static void numbers_of_threads(void) {
    block b;
    windowed(&b, 4096);
    NeutronModelHandle model = prepare(&b, 0);
    CHECK_EQUAL(neutronSetThreads(NULL, 1), NEUTRON_ERROR_NULL_HANDLE);
    CHECK_EQUAL(neutronSetThreads(model, 0), NEUTRON_ERROR_THREADS);
    CHECK_EQUAL(neutronSetThreads(model, ND_MAX_THREADS + 1), NEUTRON_ERROR_THREADS);
    const uint32_t numbers[] = {2, 3, 4, ND_MAX_THREADS, 1};
    for (int at = 0; at < 5; at++) {
        CHECK_EQUAL(neutronSetThreads(model, numbers[at]), NEUTRON_NONE);
        memset(output, 0xEE, sizeof output);
        atomic_store(&calls, 0);
        CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
        CHECK_EQUAL(calls, numbers[at] < 4 ? numbers[at] : 4); /* no more stripes than rows */
        for (int byte = 0; byte < IMAGE; byte++) CHECK_EQUAL(output[byte], byte + 1);
    }
    neutronModelUnprepare(model);

    setenv("OPENNEUTRON_THREADS", "3", 1);
    model = prepare(&b, 0);
    CHECK_EQUAL(threads_of(model), 3);
    neutronModelUnprepare(model);
    const NeutronModelConfig config = config_of(&b);
    const char *wrong[] = {"0", "17", "two", "2x", "-1"};
    for (int at = 0; at < 5; at++) {
        setenv("OPENNEUTRON_THREADS", wrong[at], 1);
        CHECK_EQUAL(neutronModelPrepareChecked(&config, &b.sizes, &model), NEUTRON_ERROR_THREADS);
    }
    setenv("OPENNEUTRON_THREADS", "", 1);
    model = prepare(&b, 0);
    CHECK_EQUAL(threads_of(model), 1);
    neutronModelUnprepare(model);
    unsetenv("OPENNEUTRON_THREADS");
}

static void failing_stripe(void) {
    block b;
    windowed(&b, 4096);
    const uint32_t fail = 99; /* build.h's kernel refuses it; 99 * 4096 taps are worth sharing */
    memcpy(b.microcode + CODE_AT + 24 + 5 * sizeof(NeutronOperandRecord), &fail, sizeof fail);
    seal(&b);
    NeutronModelHandle model = prepare(&b, 0);
    CHECK_EQUAL(neutronSetThreads(model, 2), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_ERROR_KERNEL_FAILED);
    CHECK_TEXT(neutronModelErrorDetail(model), "byte 272: conv2d: asked to fail");
    neutronModelUnprepare(model);
}

static void null_arguments(void) {
    block b;
    NeutronModelHandle model = NULL;
    size_t size;
    const char *text;
    windowed(&b, 1);
    const NeutronModelConfig config = config_of(&b);
    CHECK_EQUAL(neutronModelPrepareChecked(&config, &b.sizes, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronModelPrepareChecked(NULL, &b.sizes, &model), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronModelPrepareChecked(&config, NULL, &model), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronModelPrepareIn(NULL, 0, &config, &b.sizes, &model),
                NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronModelPrepare(NULL, &model), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronGetModelContextSize(NULL, 0), 0);
    CHECK_EQUAL(neutronModelUnprepare(NULL), NEUTRON_ERROR_NULL_HANDLE);
    CHECK_EQUAL(neutronDataSetup(NULL, &data), NEUTRON_ERROR_NULL_HANDLE);
    CHECK_EQUAL(neutronWait(NULL, NULL), NEUTRON_ERROR_NULL_HANDLE);
    CHECK_TEXT(neutronModelErrorDetail(NULL), "");
    model = prepare(&b, 0);
    CHECK_EQUAL(neutronModelGetInfo(model, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronModelGetTensor(model, 0, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronDataSetup(model, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronRunNonBlocking(model, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronIsReady(model, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronSetTrace(model, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronGetTrace(model, NULL, &size), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronGetTrace(model, &text, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronGetCycles(model, NULL), NEUTRON_ERROR_ARGUMENT_NULL);
    neutronModelUnprepare(model);
}

int main(void) {
    CHECK_EQUAL(neutronInit(), NEUTRON_NONE);
    version();
    memory();
    callbacks();
    several_models();
    timeout_inside_a_call();
    work_is_bounded();
    refused_memory();
    refused_threads();
    numbers_of_threads();
    failing_stripe();
    null_arguments();
    return check_result();
}
