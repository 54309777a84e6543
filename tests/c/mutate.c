/* mutate MICROCODE WEIGHTS KERNELS RANDOM: changes every byte of a real microcode block to many
 * values, makes the checksum right again, prepares, and runs what is accepted, in buffers of
 * exactly the declared sizes so that the address sanitizer sees a single byte too many. Then RANDOM
 * mutants with several changes at once, then the bytes of the weights, then addresses that leave
 * their region by as little as an element.
 *
 * Prints how many mutants were rejected and how many reached execution. Exit status 1 when a
 * rejection has no name or no detail, when a mutant of the checksum itself or one that leaves its
 * region is accepted, or when the unchanged program does not run.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc.h"
#include "footprint.h"
#include "generated/microcode.h"
#include "model.h"

/* HEADROOM: beyond what the unchanged program asks for, so that grown sizes get through to the
 * other checks. */
enum { HEADROOM = 1 << 16, MAX_TENSORS = 512, WEIGHT_MUTANTS = 400, DETAIL = 256, SECONDS = 1 };

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
    NeutronDataConfig data = {inputs, outputs, NULL, exactly(info.prefetchBytes)};
    outputs[info.outputs] = exactly(info.scratchBytes);
    outputs[info.outputs + 1] = exactly(info.profileBytes);
    outputs[info.outputs + 2] = NULL;
    const NeutronError error = neutronRunBlocking(model, &data);
    for (uint32_t at = 0; at < info.inputs; at++) free((void *)(uintptr_t)inputs[at]);
    for (uint32_t at = 0; at < info.outputs; at++) free(outputs[at]);
    free(outputs[info.outputs]);
    free(data.scratchWeights);
    free(outputs[info.outputs + 1]);
    return error;
}

static NeutronError attempt(session *s, const char *what, size_t where) {
    const NeutronModelConfig config = {s->microcode.bytes, s->weights.bytes, s->kernels.bytes,
                                       SECONDS};
    const NeutronModelSizes sizes = {s->microcode.size, s->weights.size, s->kernels.size,
                                     (size_t)s->scratch + HEADROOM, (size_t)s->prefetch + HEADROOM};
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
    if (neutronModelCheck(&config, &sizes, detail, sizeof detail) != error ||
        neutronErrorName(error) == NULL || detail[0] == 0) {
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
            s->microcode.bytes[at] =
                (uint8_t)(s->microcode.bytes[at] ^ (1u << next_random(&state) % 8));
        }
        seal(s);
        attempt(s, "random mutant", mutant);
    }
}

/* Nothing in the weights may lead out of bounds or into undefined arithmetic: shifts and tables are
 * in them. Coded ones may be refused, plain ones have no wrong bytes. */
static void weights(session *s, const uint8_t *original) {
    NeutronHeaderRecord h;
    memcpy(&h, original, sizeof h);
    const size_t step = s->weights.size / WEIGHT_MUTANTS + 1;
    memcpy(s->microcode.bytes, original, s->microcode.size);
    for (size_t at = 0; at < s->weights.size; at += step) {
        const uint8_t was = s->weights.bytes[at];
        s->weights.bytes[at] = (uint8_t)~was;
        seal(s);
        if (attempt(s, "weight byte", at) != NEUTRON_NONE && !h.section_count) s->wrong = 1;
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

/* Biases, multipliers and shifts at the ends of their ranges, from some word on: the first ones are
 * reasonable, so that what they give meets what the extreme ones give. */
static void extreme_words(session *s) {
    const uint32_t values[] = {INT32_MAX, (uint32_t)INT32_MIN};
    const size_t word = sizeof values[0], count = s->weights.size / word;
    uint8_t *kept = exactly(s->weights.size);
    memcpy(kept, s->weights.bytes, s->weights.size);
    for (size_t value = 0; value < sizeof values / word; value++) {
        for (size_t from = 0; from < count; from += count / WEIGHT_MUTANTS + 1) {
            for (size_t at = from; at < count; at++)
                memcpy(s->weights.bytes + at * word, &values[value], word);
            seal(s);
            attempt(s, "extremes from word", from);
            memcpy(s->weights.bytes, kept, s->weights.size);
        }
    }
    free(kept);
}

/* One word of the microcode changed so that an access leaves its region: it must be refused. */
static void must_leave(session *s, const uint8_t *original, size_t at, uint32_t value) {
    memcpy(s->microcode.bytes, original, s->microcode.size);
    memcpy(s->microcode.bytes + at, &value, sizeof value);
    seal(s);
    if (attempt(s, "out of range", at) != NEUTRON_NONE) return;
    fprintf(stderr, "out of range: %u at byte %zu was accepted\n", value, at);
    s->wrong = 1;
}

/* Bytes from an operand's first to its last, by the validator's own footprint. */
static uint32_t needed(nk_operand operand) {
    uint32_t low = 0, high = operand.available;
    while (low + 1 < high) {
        operand.available = low + (high - low) / 2;
        if (nk_inside(&operand)) high = operand.available;
        else low = operand.available;
    }
    return high;
}

/* `strided`: its own steps are used; constants and the operands of dense kernels are taken from
 * their start on. */
static void operand_out_of_range(session *s, const uint8_t *original, const nk_operand *o,
                                 size_t record, int strided) {
    const uint32_t item = nd_item_bytes(o->dtype), room = o->available, need = needed(*o);
    NeutronOperandRecord was;
    memcpy(&was, original + record, sizeof was);
    const size_t offset = record + offsetof(NeutronOperandRecord, offset);
    must_leave(s, original, offset,
               was.offset + (room - need) / item * item + item); /* the last element */
    must_leave(s, original, offset, was.offset + room);
    must_leave(s, original, offset, UINT32_MAX / item * item);
    if (!strided) return;
    if (o->width > 1)
        must_leave(s, original, record + offsetof(NeutronOperandRecord, pixel), was.pixel + room);
    if (o->ring > 1)
        must_leave(s, original, record + offsetof(NeutronOperandRecord, pitch), was.pitch + room);
    if (o->batch > 1)
        must_leave(s, original, record + offsetof(NeutronOperandRecord, plane), was.plane + room);
}

/* The copy kernel's own steps, in its parameters. */
static void loops_out_of_range(session *s, const uint8_t *original, const nk_call *call) {
    const nk_copy_params *p = (const nk_copy_params *)(const void *)call->params;
    const size_t params = (size_t)((const uint8_t *)call->params - original);
    for (size_t d = 0; d < sizeof p->dims / sizeof p->dims[0]; d++) {
        if (p->dims[d] < 2) continue;
        const size_t in = params + offsetof(nk_copy_params, input_strides) + d * sizeof(int32_t);
        const size_t out = params + offsetof(nk_copy_params, output_strides) + d * sizeof(int32_t);
        must_leave(s, original, in, call->operands[NK_COPY_INPUT].available);
        must_leave(s, original, out, call->operands[NK_COPY_OUTPUT].available);
        must_leave(s, original, out, (uint32_t)INT32_MIN);
    }
}

static void copy_out_of_range(session *s, const uint8_t *original, const nd_program *p,
                              size_t record) {
    NeutronDmaRecord d;
    memcpy(&d, original + record, sizeof d);
    const uint32_t source = (uint32_t)nd_region_bytes(p, d.source_region, d.source_index);
    const uint32_t target = (uint32_t)nd_region_bytes(p, d.target_region, d.source_index);
    must_leave(s, original, record + offsetof(NeutronDmaRecord, source_offset),
               source - d.bytes + 1);
    must_leave(s, original, record + offsetof(NeutronDmaRecord, target_offset),
               target - d.bytes + 1);
    must_leave(s, original, record + offsetof(NeutronDmaRecord, bytes),
               source - d.source_offset + 1);
    must_leave(s, original, record + offsetof(NeutronDmaRecord, bytes), UINT32_MAX);
}

static void out_of_range(session *s, const uint8_t *original) {
    const NeutronModelConfig config = {original, s->weights.bytes, s->kernels.bytes, 0};
    const NeutronModelSizes sizes = {s->microcode.size, s->weights.size, s->kernels.size,
                                     s->scratch, s->prefetch};
    nd_program program;
    nd_text nowhere = {NULL, 0, 0};
    if (nd_validate(&program, &config, &sizes, false, &nowhere) != NEUTRON_NONE) exit(2);
    const uint32_t end = program.header.code_offset + program.header.code_bytes;
    for (uint32_t offset = program.header.code_offset; offset < end;) {
        uint32_t room[ND_MAX_WORDS];
        const nd_instruction at = nd_instruction_at(&program, offset, room);
        const size_t body = offset + sizeof(NeutronInstructionRecord);
        NeutronCallRecord record;
        nd_kernel_info info;
        nk_call call;
        if (at.opcode == NEUTRON_OPCODE_DMA) copy_out_of_range(s, original, &program, body);
        if (at.opcode == NEUTRON_OPCODE_CALL) {
            nd_decode_call(&program, NULL, &at, &call, &record);
            nd_kernel(record.kernel, &info);
            if (record.kernel == NEUTRON_KERNEL_COPY) loops_out_of_range(s, original, &call);
            for (uint32_t operand = 0; operand < at.operands; operand++) {
                if (!call.operands[operand].present) continue;
                operand_out_of_range(s, original, &call.operands[operand],
                                     body + sizeof record + operand * sizeof(NeutronOperandRecord),
                                     !info.dense && info.moved >> operand & 1);
            }
        }
        offset += at.words * (uint32_t)sizeof(uint32_t);
    }
}

static void report(session *s, const char *what) {
    printf("%s: %llu rejected, %llu reached execution (%llu of them failed while running)\n", what,
           (unsigned long long)s->rejected, (unsigned long long)s->executed,
           (unsigned long long)s->failed);
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
    extreme_words(&s);
    report(&s, "weights");
    if (!(h.flags & NEUTRON_FLAG_PACKED)) { /* where each field is a word of its own */
        out_of_range(&s, original);
        report(&s, "out of range");
    }
    free(original);
    free(s.microcode.bytes);
    free(s.weights.bytes);
    free(s.kernels.bytes);
    return s.wrong;
}
