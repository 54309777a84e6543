/* One model on bare metal: prepare it in static memory, run it on the inputs embedded beside it,
 * print what came out. Each line is a keyword and its values, for people and for tests. */
#include <string.h>

#include "model.h"
#include "neutron.h"
#include "semihost.h"
#include "stack.h"

#define ALIGNED(bytes) (((bytes) + 15u) / 16u * 16u)
/* Coded constants: decoded once when the model is prepared, or while it runs into less memory, that
 * of all calls of a loop, of a call or of a block of its output channels. */
#if defined(DECODE_AT_PREPARE)
#define CONSTANT_BYTES MODEL_PLAIN_BYTES
#elif defined(DECODE_BY_LAYER)
#define CONSTANT_BYTES MODEL_LAYER_BYTES
#elif defined(DECODE_BY_BLOCK)
#define CONSTANT_BYTES MODEL_BLOCK_BYTES
#else
#define CONSTANT_BYTES MODEL_WINDOW_BYTES
#endif
/* The payload's checksum: a payload in the flash of the program is as safe as that. */
#if defined(CHECK_PAYLOAD)
#define PREPARE neutronModelPrepareIn
#else
#define PREPARE neutronModelPrepareLinked
#endif
#define CONTEXT_BYTES \
    ALIGNED(NEUTRON_CONTEXT_BYTES + MODEL_TCM_BYTES + MODEL_STATE_BYTES + CONSTANT_BYTES)
#define ARENA_BYTES \
    (CONTEXT_BYTES + MODEL_IO_BYTES + ALIGNED(MODEL_SCRATCH_BYTES) + \
     ALIGNED(MODEL_PREFETCH_BYTES) + ALIGNED(MODEL_PROFILE_BYTES))

/* All the memory a model needs, known when the image is linked. */
static _Alignas(16) uint8_t arena[ARENA_BYTES];
static uint32_t arena_used;

static void *take(uint32_t bytes) {
    void *found = arena + arena_used;
    arena_used += ALIGNED(bytes);
    return found;
}

static int failed(const char *what, NeutronError error, const char *detail) {
    put_text("error ");
    put_text(what);
    put_text(": ");
    put_text(neutronErrorName(error));
    if (neutronErrorName(error)[0] == 0) put_number((uint32_t)error); /* no messages */
    put_text(": ");
    put_text(neutronErrorString(error));
    put_text(": ");
    put_text(detail);
    put_text("\n");
    return 1;
}

static void put_line(const char *name, uint64_t value) {
    put_text(name);
    put_text(" ");
    put_number(value);
    put_text("\n");
}

static NeutronError run(NeutronModelHandle model, void **outputs, void *prefetch) {
    static const uint32_t input_bytes[] = MODEL_INPUT_BYTES;
    const void *inputs[MODEL_INPUTS];
    for (uint32_t at = 0; at < MODEL_INPUTS; at++) {
        void *input = take(input_bytes[at]);
        memcpy(input, model_inputs[at], input_bytes[at]);
        inputs[at] = input;
    }
    const NeutronDataConfig data = {inputs, outputs, NULL, prefetch};
    return neutronRunBlocking(model, &data);
}

static void put_outputs(const char *name, void *const *outputs) {
    static const uint32_t output_bytes[] = MODEL_OUTPUT_BYTES;
    for (uint32_t at = 0; at < MODEL_OUTPUTS; at++) {
        put_text(name);
        put_text(" ");
        put_number(at);
        put_text(" ");
        put_hex(outputs[at], output_bytes[at]);
        put_text("\n");
    }
}

static void report(NeutronModelHandle model, void *const *outputs) {
    NeutronModelInfo info;
    uint64_t cycles = 0;
    neutronModelGetInfo(model, &info);
    neutronGetCycles(model, &cycles);
    put_text("target ");
    put_text(info.target);
    put_text("\n");
    put_line("calls", info.calls);
    if (cycles) put_line("cycles", cycles); /* an image without cycle model has none */
    put_outputs("output", outputs);
}

int main(void) {
    static const uint32_t output_bytes[] = MODEL_OUTPUT_BYTES;
    const uint8_t *payload = (const uint8_t *)model_payload;
    const NeutronModelConfig config = {payload + MODEL_MICROCODE_OFFSET,
                                       payload + MODEL_WEIGHTS_OFFSET,
                                       payload + MODEL_KERNELS_OFFSET, 0};
    const NeutronModelSizes sizes = {MODEL_MICROCODE_BYTES, MODEL_WEIGHTS_BYTES,
                                     MODEL_KERNELS_BYTES, MODEL_SCRATCH_BYTES,
                                     MODEL_PREFETCH_BYTES};
    NeutronModelHandle model;
    void *outputs[MODEL_OUTPUTS + 3] = {NULL};

    put_text(neutronGetSdkVersion());
    put_text("\n");
    NeutronError error = neutronInit();
    if (error == NEUTRON_NONE)
        error = PREPARE(take(CONTEXT_BYTES), CONTEXT_BYTES, &config, &sizes, &model);
    if (error != NEUTRON_NONE) {
        char detail[200]; /* as long as the driver's own */
        neutronModelCheck(&config, &sizes, detail, sizeof detail);
        return failed("prepare", error, detail);
    }
    for (uint32_t at = 0; at < MODEL_OUTPUTS; at++) outputs[at] = take(output_bytes[at]);
    outputs[MODEL_OUTPUTS] = take(MODEL_SCRATCH_BYTES);
    void *prefetch = take(MODEL_PREFETCH_BYTES);
    outputs[MODEL_OUTPUTS + 1] = MODEL_PROFILE_BYTES ? take(MODEL_PROFILE_BYTES) : NULL;
    /* Memory is what an application left there, not zeros. */
    memset(arena + CONTEXT_BYTES, 0xA5, sizeof arena - CONTEXT_BYTES);
    const uint32_t mark = arena_used;
    error = run(model, outputs, prefetch);
    if (error != NEUTRON_NONE) return failed("run", error, neutronModelErrorDetail(model));
    report(model, outputs);
    if (MODEL_STATE_BYTES) { /* a second run goes on from the first, a reset undoes both */
        arena_used = mark;
        error = run(model, outputs, prefetch);
        put_outputs("second", outputs);
        arena_used = mark;
        if (error == NEUTRON_NONE) error = neutronStateReset(model);
        if (error == NEUTRON_NONE) error = run(model, outputs, prefetch);
        put_outputs("reset", outputs);
        if (error != NEUTRON_NONE) return failed("run", error, neutronModelErrorDetail(model));
    }
    put_line("arena", arena_used);
    put_line("context", CONTEXT_BYTES);
    put_line("stack", stack_used());
    return arena_used == sizeof arena ? 0 : 2;
}
