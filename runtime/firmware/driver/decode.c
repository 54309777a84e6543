#include <string.h>

#include "footprint.h"
#include "model.h"
#include "storage.h"

void nd_read(const nd_program *program, uint32_t offset, void *record, size_t size) {
    memcpy(record, program->microcode + offset, size);
}

nd_instruction nd_instruction_at(const nd_program *program, uint32_t offset,
                                 uint32_t room[ND_MAX_WORDS]) {
    NeutronInstructionRecord head;
    const uint32_t end = program->header.code_offset + program->header.code_bytes;
    nd_instruction found = {offset, 0, 0, 0, 0, NULL};
    if (offset > end || end - offset < sizeof head) return found;
    nd_read(program, offset, &head, sizeof head);
    found.words = head.words;
    found.opcode = head.opcode;
    found.operands = head.operands;
    if (!(program->header.flags & NEUTRON_FLAG_PACKED)) {
        /* Microcode is 16-byte aligned and instructions are whole words: read in place. */
        const bool inside = head.words <= (end - offset) / sizeof(uint32_t);
        found.bytes = inside ? head.words * (uint32_t)sizeof(uint32_t) : 0;
        found.plain = (const uint32_t *)(const void *)(program->microcode + offset);
        return found;
    }
    uint32_t at = offset + (uint32_t)sizeof head;
    if (head.words < 1 || head.words > ND_MAX_WORDS) return found;
    memcpy(room, &head, sizeof head);
    if (!nd_unpack_words(program->microcode, &at, end, room + 1, head.words - 1u)) return found;
    found.bytes = at - offset;
    found.plain = room;
    return found;
}

void nd_body(const nd_instruction *at, void *record, size_t size) {
    memcpy(record, at->plain + 1, size);
}

static const NeutronOperandRecord *operand_at(const nd_instruction *at, uint32_t operand) {
    const size_t words =
        (sizeof(NeutronInstructionRecord) + sizeof(NeutronCallRecord)) / sizeof(uint32_t);
    return (const NeutronOperandRecord *)(const void *)(at->plain + words) + operand;
}

NeutronOperandRecord nd_operand_record(const nd_instruction *at, uint32_t operand) {
    return *operand_at(at, operand);
}

uint32_t nd_weights_bytes(const nd_program *program) {
    return program->header.section_count ? program->header.plain_bytes
                                         : program->header.weights_bytes;
}

NeutronTensorRecord nd_tensor(const nd_program *program, uint32_t row) {
    NeutronTensorRecord record;
    nd_read(program, program->header.tensors_offset + row * (uint32_t)sizeof record, &record,
            sizeof record);
    return record;
}

uint64_t nd_region_bytes(const nd_program *program, uint8_t region, uint8_t index) {
    switch (region) {
    case NEUTRON_REGION_INPUT: return index < program->inputs ? nd_tensor(program, index).bytes : 0;
    case NEUTRON_REGION_OUTPUT:
        return index < program->outputs ? nd_tensor(program, program->inputs + index).bytes : 0;
    case NEUTRON_REGION_SCRATCH: return index ? 0 : program->scratch_bytes;
    case NEUTRON_REGION_WEIGHTS: return index ? 0 : nd_weights_bytes(program);
    case NEUTRON_REGION_PREFETCH: return index ? 0 : program->prefetch_bytes;
    case NEUTRON_REGION_TCM: return index ? 0 : program->header.tcm_bytes;
    case NEUTRON_REGION_STATE: return index ? 0 : program->header.state_bytes;
    default: return 0;
    }
}

uint8_t *nd_region_base(const nd_program *program, const nd_buffers *buffers, uint8_t region,
                        uint8_t index) {
    /* Validation keeps every write away from inputs and weights, so dropping their const is safe.
     */
    switch (region) {
    case NEUTRON_REGION_INPUT: return (uint8_t *)(uintptr_t)buffers->inputs[index];
    case NEUTRON_REGION_OUTPUT: return buffers->outputs[index];
    case NEUTRON_REGION_SCRATCH: return buffers->scratch;
    case NEUTRON_REGION_WEIGHTS: return (uint8_t *)(uintptr_t)program->weights;
    case NEUTRON_REGION_PREFETCH: return buffers->prefetch;
    case NEUTRON_REGION_STATE: return buffers->state;
    default: return buffers->tcm;
    }
}

nk_operand nd_operand_of(const NeutronOperandRecord *o, uint8_t *base) {
    if (o->channels == 0) return (nk_operand){0};
    return (nk_operand){.data = base ? base + o->offset : NULL,
                        .plane = o->plane,
                        .pitch = o->pitch,
                        .pixel = o->pixel,
                        .ring = o->ring,
                        .batch = o->batch,
                        .height = o->height,
                        .width = o->width,
                        .channels = o->channels,
                        .dtype = o->dtype,
                        .region = o->region,
                        .index = o->index,
                        .present = 1};
}

static nk_operand decode_operand(const nd_program *program, const nd_buffers *buffers,
                                 const NeutronOperandRecord *o) {
    if (buffers) return nd_operand_of(o, nd_region_base(program, buffers, o->region, o->index));
    nk_operand operand = nd_operand_of(o, NULL);
    if (operand.present) { /* only checks ask how much there is */
        const uint64_t bytes = nd_region_bytes(program, o->region, o->index);
        operand.available = bytes > o->offset ? (uint32_t)(bytes - o->offset) : 0;
    }
    return operand;
}

void nd_decode_call(const nd_program *program, const nd_buffers *buffers, const nd_instruction *at,
                    nk_call *call, NeutronCallRecord *record) {
    nd_body(at, record, sizeof *record);
    for (uint32_t operand = 0; operand < at->operands; operand++) {
        call->operands[operand] = decode_operand(program, buffers, operand_at(at, operand));
    }
    call->params = (const int32_t *)(const void *)operand_at(at, at->operands);
    call->place = program->microcode + at->offset;
    call->model = NULL;
    call->operand_count = at->operands;
    call->param_count = at->words - (uint32_t)((const uint32_t *)call->params - at->plain);
    call->kernel = record->kernel;
    call->units = program->identity.units;
    call->length = program->identity.length;
    call->rounding = record->rounding;
    call->row0 = 0;
    call->row1 = 0;
    call->why = NULL;
    call->context = NULL;
    call->keep_running = NULL;
    call->watch = NULL;
}

void nd_clip_rows(const NeutronCallRecord *record, uint32_t iteration, uint32_t height,
                  int32_t *row0, int32_t *row1) {
    const int64_t first = record->first_row + (int64_t)iteration * record->row_step;
    const int64_t end = first + record->rows;
    const int64_t low = first < 0 ? 0 : first;
    const int64_t high = end > (int64_t)height ? (int64_t)height : end;
    *row0 = low < high ? (int32_t)low : 0;
    *row1 = low < high ? (int32_t)high : 0;
}
