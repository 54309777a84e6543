/* mutate MICROCODE WEIGHTS KERNELS RANDOM: changes every byte of a real microcode block to many values, makes the
 * checksum right again, prepares, and runs what is accepted, in buffers of exactly the declared sizes so that the
 * address sanitizer sees a single byte too many. Then RANDOM mutants with several changes at once, then the bytes of
 * the weights.
 *
 * Prints how many mutants were rejected and how many reached execution. Exit status 1 when a rejection has no name or
 * no detail, when a mutant of the checksum itself is accepted, or when the unchanged program does not run.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc.h"
#include "generated/microcode.h"
#include "neutron_errors.h"

/* HEADROOM: beyond what the unchanged program asks for, so that grown sizes get through to the other checks. */
enum { HEADROOM = 1 << 16, MAX_TENSORS = 512, WEIGHT_MUTANTS = 400, DETAIL = 256 };

typedef struct {
    uint8_t *bytes; /* from malloc, exactly `size` bytes */
    size_t size;
} blob;

typedef struct {
    blob microcode, weights, kernels;
    uint32_t scratch, prefetch; /* of the unchanged program */
    uint64_t rejected, executed, failed;
    int wrong;
} session;

static blob load(const char *path) {
    blob found = {NULL, 0};
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    found.size = (size_t)ftell(file);
    found.bytes = malloc(found.size);
    rewind(file);
    if (found.bytes == NULL || fread(found.bytes, 1, found.size, file) != found.size) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    return found;
}

/* Make the checksum right for whatever the header now says; leave it where that is out of range. */
static void seal(session *s) {
    NeutronHeaderRecord h;
    memcpy(&h, s->microcode.bytes, sizeof h);
    const uint64_t field = (uint64_t)h.identity_offset + offsetof(NeutronIdentityRecord, checksum);
    if (h.microcode_bytes > s->microcode.size || h.weights_bytes > s->weights.size ||
        h.kernels_bytes > s->kernels.size || field + sizeof(uint32_t) > h.microcode_bytes) {
        return;
    }
    memset(s->microcode.bytes + field, 0, sizeof(uint32_t));
    uint32_t crc = nd_crc32(0, s->microcode.bytes, h.microcode_bytes);
    crc = nd_crc32(crc, s->weights.bytes, h.weights_bytes);
    crc = nd_crc32(crc, s->kernels.bytes, h.kernels_bytes);
    memcpy(s->microcode.bytes + field, &crc, sizeof crc);
}

static void *exactly(size_t size) {
    void *buffer = malloc(size);
    if (buffer == NULL) exit(2);
    memset(buffer, 0x5A, size);
    return buffer;
}

static NeutronError run(NeutronModelHandle model) {
    NeutronModelInfo info;
    NeutronTensorInfo tensor;
    const void *inputs[MAX_TENSORS];
    void *outputs[MAX_TENSORS + 3];
    neutronModelGetInfo(model, &info);
    for (uint32_t at = 0; at < info.inputs + info.outputs; at++) {
        neutronModelGetTensor(model, at, &tensor);
        if (at < info.inputs) inputs[at] = exactly(tensor.bytes);
        else outputs[at - info.inputs] = exactly(tensor.bytes);
    }
    NeutronDataConfig data = {inputs, outputs, exactly(info.scratchBytes), exactly(info.prefetchBytes)};
    outputs[info.outputs] = data.scratch;
    outputs[info.outputs + 1] = exactly(info.profileBytes);
    outputs[info.outputs + 2] = NULL;
    const NeutronError error = neutronRunBlocking(model, &data);
    for (uint32_t at = 0; at < info.inputs; at++) free((void *)(uintptr_t)inputs[at]);
    for (uint32_t at = 0; at < info.outputs; at++) free(outputs[at]);
    free(data.scratch);
    free(data.scratchWeights);
    free(outputs[info.outputs + 1]);
    return error;
}

static NeutronError attempt(session *s, const char *what, size_t where) {
    const NeutronModelConfig config = {s->microcode.bytes, s->weights.bytes, s->kernels.bytes, 20};
    const NeutronModelSizes sizes = {s->microcode.size, s->weights.size, s->kernels.size, (size_t)s->scratch + HEADROOM,
                                     (size_t)s->prefetch + HEADROOM};
    NeutronModelHandle model = NULL;
    char detail[DETAIL] = "";
    const NeutronError error = neutronModelPrepareChecked(&config, &sizes, &model);
    if (error == NEUTRON_NONE) {
        const NeutronError result = run(model);
        s->executed++;
        s->failed += result != NEUTRON_NONE;
        neutronModelUnprepare(model);
        return NEUTRON_NONE;
    }
    s->rejected++;
    if (neutronModelCheck(&config, &sizes, detail, sizeof detail) != error || neutronErrorName(error) == NULL ||
        detail[0] == 0) {
        fprintf(stderr, "%s %zu: error %d (%s) with detail \"%s\"\n", what, where, (int)error,
                neutronErrorString(error), detail);
        s->wrong = 1;
    }
    return error;
}

static uint32_t next_random(uint32_t *state) { /* xorshift32: the same mutants on every machine */
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void every_byte(session *s, const uint8_t *original) {
    NeutronHeaderRecord h;
    memcpy(&h, original, sizeof h);
    const size_t checksum = h.identity_offset + offsetof(NeutronIdentityRecord, checksum);
    for (size_t at = 0; at < s->microcode.size; at++) {
        const uint8_t was = original[at];
        const uint8_t values[] = {was ^ 1,
                                  was ^ 2,
                                  was ^ 4,
                                  was ^ 8,
                                  was ^ 16,
                                  was ^ 32,
                                  was ^ 64,
                                  was ^ 128,
                                  (uint8_t)(was + 1),
                                  (uint8_t)(was - 1),
                                  (uint8_t)~was,
                                  0,
                                  127,
                                  255};
        for (size_t value = 0; value < sizeof values; value++) {
            if (values[value] == was) continue;
            memcpy(s->microcode.bytes, original, s->microcode.size);
            s->microcode.bytes[at] = values[value];
            if (at >= checksum && at < checksum + sizeof(uint32_t)) {
                if (attempt(s, "checksum byte", at) != NEUTRON_ERROR_CHECKSUM) s->wrong = 1;
                continue;
            }
            seal(s);
            attempt(s, "microcode byte", at);
        }
    }
}

static void several_at_once(session *s, const uint8_t *original, uint32_t count) {
    uint32_t state = 2463534242u; /* Marsaglia's own seed */
    for (uint32_t mutant = 0; mutant < count; mutant++) {
        memcpy(s->microcode.bytes, original, s->microcode.size);
        for (uint32_t changes = 2 + next_random(&state) % 3; changes; changes--) {
            const size_t at = next_random(&state) % s->microcode.size;
            s->microcode.bytes[at] = (uint8_t)(s->microcode.bytes[at] ^ (1u << next_random(&state) % 8));
        }
        seal(s);
        attempt(s, "random mutant", mutant);
    }
}

/* Nothing in the weights may lead out of bounds or into undefined arithmetic: shifts and tables are in them. */
static void weights(session *s, const uint8_t *original) {
    const size_t step = s->weights.size / WEIGHT_MUTANTS + 1;
    memcpy(s->microcode.bytes, original, s->microcode.size);
    for (size_t at = 0; at < s->weights.size; at += step) {
        const uint8_t was = s->weights.bytes[at];
        s->weights.bytes[at] = (uint8_t)~was;
        seal(s);
        if (attempt(s, "weight byte", at) != NEUTRON_NONE) s->wrong = 1;
        s->weights.bytes[at] = was;
    }
    uint8_t *kept = exactly(s->weights.size);
    memcpy(kept, s->weights.bytes, s->weights.size);
    for (int value = 0; value < 256; value += 51) { /* all bytes alike, 0 … 255 */
        memset(s->weights.bytes, value, s->weights.size);
        seal(s);
        attempt(s, "weights filled with", (size_t)value);
    }
    memcpy(s->weights.bytes, kept, s->weights.size);
    free(kept);
}

static void report(session *s, const char *what) {
    printf("%s: %llu rejected, %llu reached execution (%llu of them failed while running)\n", what,
           (unsigned long long)s->rejected, (unsigned long long)s->executed, (unsigned long long)s->failed);
    s->rejected = s->executed = s->failed = 0;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: mutate MICROCODE WEIGHTS KERNELS RANDOM\n");
        return 2;
    }
    session s = {load(argv[1]), load(argv[2]), load(argv[3]), 0, 0, 0, 0, 0, 0};
    NeutronHeaderRecord h;
    if (s.microcode.size < sizeof h) return 2;
    memcpy(&h, s.microcode.bytes, sizeof h);
    s.scratch = h.layout[0];
    s.prefetch = h.flags & NEUTRON_FLAG_PROFILING ? h.layout[3] : h.layout[1];
    uint8_t *original = exactly(s.microcode.size);
    memcpy(original, s.microcode.bytes, s.microcode.size);

    if (attempt(&s, "unchanged", 0) != NEUTRON_NONE || s.failed) s.wrong = 1;
    report(&s, "unchanged");
    every_byte(&s, original);
    report(&s, "single bytes");
    several_at_once(&s, original, (uint32_t)strtoul(argv[4], NULL, 10));
    report(&s, "several at once");
    weights(&s, original);
    report(&s, "weights");
    free(original);
    free(s.microcode.bytes);
    free(s.weights.bytes);
    free(s.kernels.bytes);
    return s.wrong;
}
