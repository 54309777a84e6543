/* The driver under a caller that behaves as ExecuTorch's stock delegate does: its structs come from
 * memory that nobody cleared, it sets only the fields it knows, never calls neutronDataSetup, and
 * hands scratch, profile and debug over behind the outputs. */
#include "build.h"

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                nk_call *call) = {[KERNEL] = add_one};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

enum { POISON = 0xA5, ARENA = 1024, RECORD = 16 };

/* What such a delegate keeps from initialisation to execution. */
typedef struct {
    NeutronModelConfig model;
    NeutronDataConfig data;
    NeutronModelHandle handle;
} delegate;

static _Alignas(16) uint8_t arena[ARENA];
static size_t arena_used;

/* Each part begins at a multiple of 16 and holds what was there before. A size of 0 gives an
 * address as well, which nobody may write to. */
static void *allocate(size_t size) {
    void *found = arena + arena_used;
    arena_used += (size + 15) / 16 * 16;
    CHECK(arena_used <= sizeof arena);
    return found;
}

static void initialise(delegate *d, const block *b) {
    memset(d, POISON, sizeof *d);
    d->model.timeoutSeconds = 60;
    d->model.microcode = b->microcode;
    d->model.weights = b->weights;
    d->model.kernels = b->kernels;
    d->handle = NULL;
    CHECK_EQUAL(neutronModelPrepare(&d->model, &d->handle), NEUTRON_NONE);
}

/* One execution; the bytes that follow each buffer must stay as they are. */
static void execute(delegate *d, const NeutronModelInfo *sizes, bool external_memory) {
    arena_used = 0;
    memset(arena, POISON, sizeof arena);
    d->data.inputs = allocate(sizeof(void *));
    d->data.outputs = allocate(4 * sizeof(void *));
    uint8_t *scratch = allocate(sizes->scratchBytes), *guard = allocate(16);
    uint8_t *profile = allocate(sizes->profileBytes), *debug = allocate(sizes->debugBytes);
    uint8_t *input = allocate(IMAGE), *output = allocate(IMAGE), *last = allocate(16);
    d->data.outputs[1] = scratch;
    d->data.outputs[2] = profile;
    d->data.outputs[3] = debug;
    if (external_memory) d->data.scratchWeights = allocate(sizes->prefetchBytes);
    for (int at = 0; at < IMAGE; at++) input[at] = (uint8_t)at;
    d->data.inputs[0] = input;
    d->data.outputs[0] = output;
    CHECK_EQUAL(neutronRunBlocking(d->handle, &d->data), NEUTRON_NONE);
    for (int at = 0; at < IMAGE; at++) CHECK_EQUAL(output[at], at + 2);
    for (int at = 0; at < 16; at++) CHECK_EQUAL(guard[at], POISON);
    for (int at = 0; at < 16; at++) CHECK_EQUAL(last[at], POISON);
    if (sizes->profileBytes) CHECK_EQUAL(profile[0], 1); /* a start point */
}

/* Two calls through scratch; the prefetched weights are copied and waited for. */
static void program(block *b, bool prefetch, bool profiling) {
    start(b);
    if (prefetch) {
        append_copy(b, (NeutronDmaRecord){.source_region = NEUTRON_REGION_WEIGHTS,
                                          .target_region = NEUTRON_REGION_PREFETCH,
                                          .bytes = WEIGHTS});
        append_wait(b, 0);
    }
    append_call(b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_SCRATCH, 0, 4), 0, 4, 0);
    append_call(b, image(NEUTRON_REGION_SCRATCH, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4,
                0);
    finish(b, 2);
    const uint32_t fetched = prefetch ? WEIGHTS : 0;
    const uint32_t plain[6] = {SCRATCH, fetched, 1, 1, 2, 0};
    const uint32_t profiled[6] = {SCRATCH, 2 * RECORD, 0, fetched, 1, 1};
    memcpy(b->header.layout, profiling ? profiled : plain, sizeof plain);
    b->header.flags = profiling ? NEUTRON_FLAG_PROFILING : 0;
    seal(b);
}

static void play(bool prefetch, bool profiling) {
    block b;
    delegate d;
    NeutronModelInfo sizes;
    program(&b, prefetch, profiling);
    initialise(&d, &b);
    CHECK_EQUAL(neutronModelGetInfo(d.handle, &sizes), NEUTRON_NONE);
    CHECK_EQUAL(sizes.prefetchBytes, prefetch ? WEIGHTS : 0);
    for (int times = 0; times < 3; times++) execute(&d, &sizes, prefetch);
    CHECK_EQUAL(neutronModelUnprepare(d.handle), NEUTRON_NONE);
}

int main(void) {
    play(false, false);
    play(true, false);
    play(false, true);
    play(true, true);
    return check_result();
}
