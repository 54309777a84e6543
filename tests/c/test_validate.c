#include "build.h"

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                nk_call *call) = {[KERNEL] = add_one};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

static char detail[ND_DETAIL_BYTES];

/* One call from input to output. */
static void simple(block *b) {
    start(b);
    append_call(b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    finish(b, 1);
}

/* Error after changing the 32-bit word at a byte offset, the checksum made right again. */
static NeutronError with_word(uint32_t offset, uint32_t value) {
    block b;
    simple(&b);
    memcpy(b.microcode + offset, &value, sizeof value);
    memcpy(&b.header, b.microcode, sizeof b.header);
    memcpy(&b.identity, b.microcode + 128, sizeof b.identity);
    memcpy(b.tensors, b.microcode + 128 + 48, sizeof b.tensors);
    if (b.header.microcode_bytes > b.size) b.header.microcode_bytes = b.size;
    seal(&b);
    memcpy(b.microcode + offset, &value, sizeof value);
    return verdict(&b, detail, sizeof detail);
}

#define HEADER_WORD(field) ((uint32_t)offsetof(NeutronHeaderRecord, field))
#define OPERAND_WORD(operand, field) \
    (CODE_AT + 24 + (operand) * 40 + (uint32_t)offsetof(NeutronOperandRecord, field))
#define CALL_WORD(field) (CODE_AT + 4 + (uint32_t)offsetof(NeutronCallRecord, field))

static void good_is_accepted(void) {
    block b;
    simple(&b);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_NONE);
    CHECK_TEXT(detail, "");
}

static void container(void) {
    CHECK_EQUAL(with_word(0, 1), NEUTRON_ERROR_MAGIC);
    CHECK_EQUAL(with_word(4, 0xBEEF), NEUTRON_ERROR_OTHER_CONVERTER);
    CHECK_TEXT(detail, "byte 4: the version word is 48879, not 1330511873");
    CHECK_EQUAL(with_word(HEADER_WORD(header_bytes), 124), NEUTRON_ERROR_HEADER);
    CHECK_EQUAL(with_word(HEADER_WORD(flags), 4), NEUTRON_ERROR_HEADER);
    CHECK_EQUAL(with_word(HEADER_WORD(reserved) + 16, 1), NEUTRON_ERROR_HEADER);
    CHECK_TEXT(detail, "byte 124: a reserved word is 1");
    CHECK_EQUAL(with_word(HEADER_WORD(microcode_bytes), 100000), NEUTRON_ERROR_TRUNCATED);
    CHECK_EQUAL(with_word(HEADER_WORD(identity_offset), 0xFFFFFFF0u), NEUTRON_ERROR_HEADER);
    CHECK_EQUAL(with_word(HEADER_WORD(layout), SCRATCH + 1), NEUTRON_ERROR_BUFFER_TOO_SMALL);
    CHECK_EQUAL(with_word(HEADER_WORD(layout) + 8, 2), NEUTRON_ERROR_HEADER);
    CHECK_EQUAL(with_word(HEADER_WORD(layout) + 12, 0), NEUTRON_ERROR_HEADER);
    CHECK_EQUAL(with_word(HEADER_WORD(tensors_offset), 4092), NEUTRON_ERROR_HEADER);
    CHECK_EQUAL(with_word(HEADER_WORD(code_offset), CODE_AT + 2), NEUTRON_ERROR_HEADER);
    CHECK_EQUAL(with_word(HEADER_WORD(code_bytes), 0xFFFFFFFCu), NEUTRON_ERROR_HEADER);
    CHECK_EQUAL(with_word(HEADER_WORD(tcm_bytes), 16), NEUTRON_ERROR_HEADER);
    CHECK_EQUAL(with_word(HEADER_WORD(call_count), 2), NEUTRON_ERROR_HEADER);
}

static void short_blocks(void) {
    block b;
    for (size_t size = 0; size < 160; size += 4) {
        simple(&b);
        b.sizes.microcode = size;
        CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_TRUNCATED);
    }
    simple(&b);
    b.sizes.weights--;
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_TRUNCATED);
    CHECK_TEXT(detail, "the weights block has 31 bytes, the header declares 32");
    simple(&b);
    b.sizes.kernels = 0;
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_TRUNCATED);
}

static void checksum_comes_before_the_rest(void) {
    block b;
    for (int part = 0; part < 3; part++) {
        simple(&b);
        if (part == 0) b.microcode[CODE_AT] ^= 1; /* an unknown opcode behind it */
        if (part == 1) b.weights[WEIGHTS - 1] ^= 1;
        if (part == 2) b.kernels[0] ^= 1;
        CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_CHECKSUM);
    }
}

static void identity(void) {
    block b;
    simple(&b);
    b.identity.format_version = 2;
    seal(&b);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_FORMAT_VERSION);
    simple(&b);
    memcpy(b.identity.target, "imxrt701", 8);
    seal(&b);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_UNKNOWN_TARGET);
    CHECK_TEXT(detail, "byte 128: target 'imxrt701'");
    simple(&b);
    memcpy(b.identity.target, "imxrt700\0x", 10);
    seal(&b);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_UNKNOWN_TARGET);
    simple(&b);
    memcpy(b.identity.target, "mcxn94x\0", 8);
    seal(&b);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_TARGET_GEOMETRY);
}

static void tensor_table(void) {
    const uint32_t row = 128 + 48;
    CHECK_EQUAL(with_word(row, 1), NEUTRON_ERROR_TENSOR_TABLE);             /* kind, rank */
    CHECK_EQUAL(with_word(row + 4, IMAGE + 1), NEUTRON_ERROR_TENSOR_TABLE); /* bytes */
    CHECK_EQUAL(with_word(row + 16, 2), NEUTRON_ERROR_TENSOR_TABLE);        /* a dimension */
    CHECK_EQUAL(with_word(row + 16, 0), NEUTRON_ERROR_TENSOR_TABLE);        /* an empty one */
    CHECK_EQUAL(with_word(row + 44, 1), NEUTRON_ERROR_TENSOR_TABLE); /* one behind the rank */
    CHECK_EQUAL(with_word(row + 48, 0x04000000),
                NEUTRON_ERROR_TENSOR_TABLE); /* an output that says input */
}

static void calls(void) {
    CHECK_EQUAL(with_word(CALL_WORD(kernel), 9999), NEUTRON_ERROR_KERNEL_MISSING);
    CHECK_EQUAL(with_word(CALL_WORD(kernel), KERNEL | 77 << 16 | NEUTRON_ROUNDING_DOUBLE << 24),
                NEUTRON_ERROR_KERNEL_ABI);
    CHECK_EQUAL(with_word(CALL_WORD(kernel), KERNEL | NEUTRON_CONV2D_ABI << 16 | 9 << 24),
                NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(with_word(CALL_WORD(rows), 0), NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(with_word(CODE_AT, 1 | 5 << 8 | (CALL_BYTES / 4 - 1) << 16),
                NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(with_word(CODE_AT, 1 | 4 << 8 | CALL_BYTES / 4 << 16), NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(with_word(CODE_AT, 1 | 5 << 8 | 2 << 16), NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(with_word(CODE_AT, 1 | 5 << 8), NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(with_word(CODE_AT, 1 | 5 << 8 | 0xFFFFu << 16), NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(with_word(CODE_AT, 77 | CALL_BYTES / 4 << 16), NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(with_word(CODE_AT + CALL_BYTES, NEUTRON_OPCODE_WAIT | 1 << 16),
                NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(with_word(CODE_AT, NEUTRON_OPCODE_END | 1 << 16), NEUTRON_ERROR_INSTRUCTION);
}

static void operands(void) {
    CHECK_EQUAL(with_word(OPERAND_WORD(4, region), NEUTRON_REGION_INPUT),
                NEUTRON_ERROR_WRITE_PROTECTED);
    CHECK_EQUAL(with_word(OPERAND_WORD(4, region), NEUTRON_REGION_WEIGHTS),
                NEUTRON_ERROR_WRITE_PROTECTED);
    CHECK_EQUAL(with_word(OPERAND_WORD(4, region), NEUTRON_REGION_PREFETCH), NEUTRON_ERROR_ADDRESS);
    CHECK_EQUAL(with_word(OPERAND_WORD(0, region), 6), NEUTRON_ERROR_ADDRESS);
    CHECK_EQUAL(with_word(OPERAND_WORD(0, region), 1 << 8),
                NEUTRON_ERROR_ADDRESS); /* input 1 of 1 */
    CHECK_EQUAL(with_word(OPERAND_WORD(0, region), 7 << 16), NEUTRON_ERROR_OPERAND);  /* type */
    CHECK_EQUAL(with_word(OPERAND_WORD(0, region), 1u << 24), NEUTRON_ERROR_OPERAND); /* reserved */
    CHECK_EQUAL(with_word(OPERAND_WORD(0, offset), 1), NEUTRON_ERROR_KERNEL_REFUSED);
    CHECK_TEXT(detail, "byte 272: conv2d: the input leaves its region");
    CHECK_EQUAL(with_word(OPERAND_WORD(0, offset), IMAGE), NEUTRON_ERROR_ADDRESS);
    CHECK_EQUAL(with_word(OPERAND_WORD(0, offset), UINT32_MAX), NEUTRON_ERROR_ADDRESS);
    CHECK_EQUAL(with_word(OPERAND_WORD(4, pitch), 9), NEUTRON_ERROR_KERNEL_REFUSED);
    CHECK_EQUAL(with_word(OPERAND_WORD(4, pitch), UINT32_MAX), NEUTRON_ERROR_KERNEL_REFUSED);
    CHECK_EQUAL(with_word(OPERAND_WORD(4, ring), 0), NEUTRON_ERROR_OPERAND);
    CHECK_EQUAL(with_word(OPERAND_WORD(4, ring), 5), NEUTRON_ERROR_KERNEL_REFUSED);
    CHECK_EQUAL(with_word(OPERAND_WORD(4, height), UINT32_MAX), NEUTRON_ERROR_OPERAND);
    CHECK_EQUAL(with_word(OPERAND_WORD(1, channels), 0), NEUTRON_ERROR_OPERAND); /* not optional */
    CHECK_EQUAL(with_word(OPERAND_WORD(3, channels), 1),
                NEUTRON_ERROR_OPERAND); /* present, other fields zero */
    CHECK_EQUAL(with_word(OPERAND_WORD(1, region), 3 | NEUTRON_DTYPE_INT32 << 16), NEUTRON_NONE);
}

static void misaligned_words(void) {
    block b;
    start(&b);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    NeutronOperandRecord weights;
    memcpy(&weights, b.microcode + OPERAND_WORD(1, region), sizeof weights);
    weights.dtype = NEUTRON_DTYPE_INT32;
    weights.offset = 2;
    memcpy(b.microcode + OPERAND_WORD(1, region), &weights, sizeof weights);
    finish(&b, 1);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_OPERAND);
    CHECK_TEXT(detail, "byte 272: conv2d: operand 1: elements would be misaligned from offset 2");
}

static NeutronError looped(uint32_t iterations, uint32_t body_words, uint32_t calls_said) {
    block b;
    start(&b);
    append_loop(&b, iterations, body_words);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), -1, 1,
                1);
    finish(&b, calls_said);
    return verdict(&b, detail, sizeof detail);
}

static void loops(void) {
    const uint32_t body = CALL_BYTES / 4;
    CHECK_EQUAL(looped(5, body, 5), NEUTRON_NONE);
    CHECK_EQUAL(looped(5, body, 6), NEUTRON_ERROR_CALL_COUNT);
    CHECK_TEXT(detail, "the code makes 5 calls, the header says 6");
    CHECK_EQUAL(looped(0, body, 0), NEUTRON_ERROR_LOOP);
    CHECK_EQUAL(looped(5, 0, 5), NEUTRON_ERROR_LOOP);
    CHECK_EQUAL(looped(5, body - 1, 5), NEUTRON_ERROR_INSTRUCTION);
    CHECK_EQUAL(looped(5, body + 1, 5), NEUTRON_ERROR_INSTRUCTION); /* END inside */
    CHECK_EQUAL(looped(5, body + 2, 5), NEUTRON_ERROR_LOOP);
    CHECK_EQUAL(looped(5, UINT32_MAX, 5), NEUTRON_ERROR_LOOP);
    CHECK_EQUAL(looped(UINT32_MAX, body, UINT32_MAX), NEUTRON_ERROR_CALL_COUNT);

    block b;
    start(&b);
    append_loop(&b, 2, 3 + body);
    append_loop(&b, 2, body);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    finish(&b, 4);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_LOOP);
    CHECK_TEXT(detail, "byte 284: a loop inside a loop");
}

static NeutronError copied(NeutronDmaRecord copy, uint32_t wait) {
    block b;
    start(&b);
    append_copy(&b, copy);
    append_wait(&b, wait);
    finish(&b, 0);
    return verdict(&b, detail, sizeof detail);
}

static void copies(void) {
    enum {
        IN = NEUTRON_REGION_INPUT,
        OUT = NEUTRON_REGION_OUTPUT,
        RAM = NEUTRON_REGION_SCRATCH,
        ROM = NEUTRON_REGION_WEIGHTS
    };
    CHECK_EQUAL(copied((NeutronDmaRecord){0, ROM, 0, RAM, 0, 0, 32}, 0), NEUTRON_NONE);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, IN, 0, RAM, 0, 32, 32}, 0), NEUTRON_NONE);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, RAM, 0, OUT, 0, 0, 32}, 0), NEUTRON_NONE);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, RAM, 0, RAM, 0, 32, 32}, 0), NEUTRON_NONE);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, RAM, 0, RAM, 0, 31, 32}, 0), NEUTRON_ERROR_COPY);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, ROM, 0, RAM, 0, 0, 0}, 0), NEUTRON_ERROR_COPY);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, ROM, 1, RAM, 0, 0, 32}, 0), NEUTRON_ERROR_COPY);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, IN, 0, OUT, 0, 0, 32}, 0), NEUTRON_ERROR_COPY);
    CHECK_EQUAL(copied((NeutronDmaRecord){16, ROM, 0, RAM, 0, 0, 32}, 0), NEUTRON_ERROR_COPY);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, ROM, 0, RAM, 0, 0, 32}, 16), NEUTRON_ERROR_COPY);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, ROM, 0, RAM, 1, 0, 32}, 0), NEUTRON_ERROR_ADDRESS);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, ROM, 0, RAM, 0, 33, 32}, 0), NEUTRON_ERROR_ADDRESS);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, ROM, 0, RAM, UINT32_MAX, 0, 32}, 0),
                NEUTRON_ERROR_ADDRESS);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, RAM, 0, ROM, 0, 0, 32}, 0),
                NEUTRON_ERROR_WRITE_PROTECTED);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, RAM, 0, IN, 0, 0, 32}, 0),
                NEUTRON_ERROR_WRITE_PROTECTED);
    CHECK_EQUAL(copied((NeutronDmaRecord){0, IN, 1, RAM, 0, 0, 32}, 0), NEUTRON_ERROR_ADDRESS);
}

/* One call on Neutron-S with this kernels block. */
static NeutronError listed(uint32_t count, uint16_t first, uint16_t second, uint32_t bytes) {
    block b;
    start(&b);
    b.identity = (NeutronIdentityRecord){.target = "imx95",
                                         .format_version = 1,
                                         .hw_version = 2,
                                         .cores = 4,
                                         .units = 16,
                                         .length = 16};
    memcpy(b.kernels, &count, sizeof count);
    memcpy(b.kernels + 4, &first, sizeof first);
    memcpy(b.kernels + 6, &second, sizeof second);
    b.header.kernels_bytes = bytes;
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    finish(&b, 1);
    return verdict(&b, detail, sizeof detail);
}

static void kernels_block(void) {
    CHECK_EQUAL(listed(1, KERNEL, 0, 6), NEUTRON_NONE);
    CHECK_EQUAL(listed(1, KERNEL, 0, 16), NEUTRON_NONE);
    CHECK_EQUAL(listed(1, KERNEL, 1, 16), NEUTRON_ERROR_KERNELS_BLOCK);
    CHECK_EQUAL(listed(2, KERNEL, 2, 8), NEUTRON_ERROR_KERNELS_BLOCK);
    CHECK_EQUAL(listed(1, KERNEL + 1, 0, 6), NEUTRON_ERROR_KERNELS_BLOCK);
    CHECK_EQUAL(listed(0, 0, 0, 4), NEUTRON_ERROR_KERNELS_BLOCK);
    CHECK_EQUAL(listed(1, KERNEL, 0, 5), NEUTRON_ERROR_KERNELS_BLOCK);
    CHECK_EQUAL(listed(UINT32_MAX, KERNEL, 0, 16), NEUTRON_ERROR_KERNELS_BLOCK);
    CHECK_EQUAL(listed(1, KERNEL, 0, 0), NEUTRON_ERROR_KERNELS_BLOCK);
}

static void arguments(void) {
    block b;
    simple(&b);
    NeutronModelConfig config = config_of(&b);
    CHECK_EQUAL(neutronModelCheck(NULL, &b.sizes, NULL, 0), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronModelCheck(&config, NULL, NULL, 0), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronModelCheck(&config, &b.sizes, NULL, 0), NEUTRON_NONE);
    config.weights = b.weights + 8;
    CHECK_EQUAL(neutronModelCheck(&config, &b.sizes, NULL, 0), NEUTRON_ERROR_ALIGNMENT);
    config.weights = NULL;
    CHECK_EQUAL(neutronModelCheck(&config, &b.sizes, NULL, 0), NEUTRON_ERROR_ARGUMENT_NULL);
}

int main(void) {
    good_is_accepted();
    container();
    short_blocks();
    checksum_comes_before_the_rest();
    identity();
    tensor_table();
    calls();
    operands();
    misaligned_words();
    loops();
    copies();
    kernels_block();
    arguments();
    return check_result();
}
