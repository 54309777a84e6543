/* Hand-built microcode for tests of driver and validator: one input, one output, kernel 1 replaced
 * by "add one". */
#ifndef BUILD_H
#define BUILD_H

#include <stdlib.h>

#include "check.h"
#include "crc.h"
#include "model.h"

enum {
    IMAGE = 4 * 4 * 2,
    SCRATCH = 64,
    WEIGHTS = 32,
    CODE_AT = 128 + 48 + 2 * 48,
    KERNEL = NEUTRON_KERNEL_CONV2D
};

typedef struct {
    _Alignas(16) uint8_t microcode[8192];
    _Alignas(16) uint8_t weights[WEIGHTS];
    _Alignas(16) uint8_t kernels[16];
    uint32_t size;
    NeutronHeaderRecord header;
    NeutronIdentityRecord identity;
    NeutronTensorRecord tensors[2];
    NeutronModelSizes sizes;
} block;

/* Stands in for conv2d: output = input + 1, on whole tensors and rings alike. */
static inline int32_t add_one(uint32_t verb, nk_call *call) {
    const nk_operand *in = &call->operands[NK_CONV2D_INPUT],
                     *out = &call->operands[NK_CONV2D_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_inside(in)) return nk_refuse(call, "the input leaves its region");
        if (!nk_inside(out)) return nk_refuse(call, "the output leaves its region");
        if (in->width != out->width || in->channels != out->channels)
            return nk_refuse(call, "the shapes differ");
        if (in->height != out->height || in->batch != out->batch)
            return nk_refuse(call, "the shapes differ");
        return nk_inside_flat(&call->operands[NK_CONV2D_WEIGHTS], 16)
                   ? 0
                   : nk_refuse(call, "the weights are too short");
    }
    if (call->params[0] == 99) return nk_refuse(call, "asked to fail");
    if (call->params[0] == 98) return nk_index_outside(call, -3, 4);
    if (call->params[0] == 97) return nk_index_outside(call, INT64_C(1) << 40, 4);
    for (uint32_t n = 0; n < out->batch; n++) {
        for (int32_t y = call->row0; y < call->row1; y++) {
            for (uint32_t x = 0; x < out->width; x++) {
                for (uint32_t c = 0; c < out->channels; c++) {
                    nk_row(out, n, y)[x * out->pixel + c] =
                        (uint8_t)(nk_row(in, n, y)[x * in->pixel + c] + 1);
                }
            }
        }
    }
    return 0;
}

static inline NeutronOperandRecord image(uint8_t region, uint32_t offset, uint32_t ring) {
    const NeutronOperandRecord o = {.region = region,
                                    .offset = offset,
                                    .plane = ring * 8,
                                    .pitch = 8,
                                    .pixel = 2,
                                    .ring = ring,
                                    .batch = 1,
                                    .height = 4,
                                    .width = 4,
                                    .channels = 2};
    return o;
}

static inline void append(block *b, const void *bytes, uint32_t size) {
    memcpy(b->microcode + b->size, bytes, size);
    b->size += size;
}

static inline void append_head(block *b, uint8_t opcode, uint8_t operands, uint32_t body_bytes) {
    const NeutronInstructionRecord head = {opcode, operands, (uint16_t)(1 + body_bytes / 4)};
    append(b, &head, sizeof head);
}

static inline void append_call(block *b, NeutronOperandRecord in, NeutronOperandRecord out,
                               int32_t first, uint32_t rows, int32_t step) {
    const NeutronCallRecord call = {
        KERNEL, NEUTRON_CONV2D_ABI, NEUTRON_ROUNDING_DOUBLE, 7, first, rows, step};
    const NeutronOperandRecord flat = {.region = NEUTRON_REGION_WEIGHTS,
                                       .ring = 1,
                                       .batch = 1,
                                       .height = 1,
                                       .width = 1,
                                       .channels = 16};
    const NeutronOperandRecord operands[] = {in, flat, flat, {0}, out};
    const int32_t params[NEUTRON_CONV2D_PARAM_WORDS] = {1, 1, 1, 1, 1, 1, 0, 0, 1};
    append_head(b, NEUTRON_OPCODE_CALL, NK_CONV2D_OPERANDS,
                sizeof call + sizeof operands + sizeof params);
    append(b, &call, sizeof call);
    append(b, operands, sizeof operands);
    append(b, params, sizeof params);
}

enum { CALL_BYTES = 4 + 20 + 5 * 40 + 4 * NEUTRON_CONV2D_PARAM_WORDS };

static inline void append_copy(block *b, NeutronDmaRecord copy) {
    append_head(b, NEUTRON_OPCODE_DMA, 0, sizeof copy);
    append(b, &copy, sizeof copy);
}

static inline void append_wait(block *b, uint32_t channel) {
    append_head(b, NEUTRON_OPCODE_WAIT, 0, sizeof channel);
    append(b, &channel, sizeof channel);
}

static inline void append_loop(block *b, uint32_t iterations, uint32_t body_words) {
    const NeutronLoopRecord loop = {iterations, body_words};
    append_head(b, NEUTRON_OPCODE_LOOP, 0, sizeof loop);
    append(b, &loop, sizeof loop);
}

static inline void start(block *b) {
    memset(b, 0, sizeof *b);
    const NeutronTensorRecord tensor = {.rank = 4, .bytes = IMAGE, .dims = {1, 4, 4, 2}};
    b->header = (NeutronHeaderRecord){.magic = NEUTRON_MAGIC,
                                      .version = NEUTRON_VERSION_WORD,
                                      .header_bytes = 128,
                                      .identity_offset = 128,
                                      .tensors_offset = 128 + 48,
                                      .weights_bytes = WEIGHTS,
                                      .kernels_bytes = 1,
                                      .layout = {SCRATCH, 0, 1, 1},
                                      .tensor_count = 2,
                                      .code_offset = CODE_AT};
    b->identity = (NeutronIdentityRecord){.target = "imxrt700",
                                          .format_version = 1,
                                          .hw_version = 2,
                                          .cores = 1,
                                          .units = 8,
                                          .length = 8};
    b->tensors[0] = b->tensors[1] = tensor;
    b->tensors[1].kind = 1;
    b->size = CODE_AT;
    b->sizes = (NeutronModelSizes){0, WEIGHTS, sizeof b->kernels, SCRATCH, 0};
    b->kernels[0] = 1;
}

/* Write the records in front and the checksum of what is there now. */
static inline void seal(block *b) {
    memcpy(b->microcode, &b->header, sizeof b->header);
    b->identity.checksum = 0;
    memcpy(b->microcode + 128, &b->identity, sizeof b->identity);
    memcpy(b->microcode + 128 + 48, b->tensors, sizeof b->tensors);
    uint32_t crc = nd_crc32(0, b->microcode, b->header.microcode_bytes);
    crc = nd_crc32(crc, b->weights, b->header.weights_bytes);
    b->identity.checksum = nd_crc32(crc, b->kernels, b->header.kernels_bytes);
    memcpy(b->microcode + 128, &b->identity, sizeof b->identity);
}

static inline void finish(block *b, uint32_t calls) {
    append_head(b, NEUTRON_OPCODE_END, 0, 0);
    b->header.code_bytes = b->size - CODE_AT;
    b->size = (b->size + 15) / 16 * 16;
    b->header.microcode_bytes = b->size;
    b->header.call_count = b->header.layout[4] = calls;
    b->sizes.microcode = b->size;
    seal(b);
}

static inline NeutronModelConfig config_of(const block *b) {
    const NeutronModelConfig config = {b->microcode, b->weights, b->kernels, 0};
    return config;
}

/* The error word of a block, with its detail. */
static inline NeutronError verdict(const block *b, char *detail, size_t size) {
    const NeutronModelConfig config = config_of(b);
    return neutronModelCheck(&config, &b->sizes, detail, size);
}

#endif
