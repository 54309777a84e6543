#include "self_test.h"

#include <string.h>

#include "console.h"
#include "model.h"
#include "neutron.h"
#include "samples.h"

#define UNWRITTEN 0x5A /* what outputs hold before a run, so that a missing one is found */

/* All the memory of the model; where it is lies with the linker script. */
static _Alignas(16) uint8_t arena[MODEL_ARENA_BYTES];
static _Alignas(16) uint8_t results[SAMPLE_OUTPUT_ROOM];

static int failed(const char *what, int32_t error) {
    put_text(what);
    put_text(": ");
    put_text(neutronErrorName(error));
    put_text(": ");
    put_text(neutronErrorString(error));
    put_text("\nself-test: fail\n");
    return 1;
}

/* The first byte in which they differ, or `bytes`. */
static uint32_t first_difference(const uint8_t *found, const uint8_t *expected, uint32_t bytes) {
    uint32_t at = 0;
    while (at < bytes && found[at] == expected[at]) at++;
    return at;
}

static int compare(uint32_t sample, void *const *outputs) {
    int differing = 0;
    for (uint32_t output = 0; output < MODEL_OUTPUTS; output++) {
        const uint8_t *found = outputs[output], *expected = sample_outputs[sample][output];
        const uint32_t at = first_difference(found, expected, sample_output_bytes[output]);
        if (at == sample_output_bytes[output]) continue;
        differing = 1;
        put_text("sample ");
        put_number(sample);
        put_text(": output ");
        put_number(output);
        put_text(" differs from byte ");
        put_number(at);
        put_text(" on: ");
        put_number(found[at]);
        put_text(" instead of ");
        put_number(expected[at]);
        put_text("\n");
    }
    return differing;
}

int self_test(void) {
    void *outputs[MODEL_OUTPUTS];
    uint32_t room = 0;
    for (uint32_t at = 0; at < MODEL_OUTPUTS; at++) {
        outputs[at] = results + room;
        room += (sample_output_bytes[at] + 15u) / 16u * 16u;
    }
    put_text(SAMPLE_TITLE "\n");
    int32_t error = model_init(arena, sizeof arena);
    if (error) return failed("model_init", error);
    uint32_t differing = 0;
    for (uint32_t sample = 0; sample < SAMPLES; sample++) {
        memset(results, UNWRITTEN, sizeof results);
        error = model_run(arena, sample_inputs[sample], outputs);
        if (error) return failed("model_run", error);
        differing += (uint32_t)compare(sample, outputs);
    }
    put_number(SAMPLES - differing);
    put_text(" of ");
    put_number(SAMPLES);
    put_text(" samples equal the expected outputs\n");
    put_text(differing ? "self-test: fail\n" : "self-test: pass\n");
    return differing != 0;
}
