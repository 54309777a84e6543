#include "footprint.h"
#include "model.h"

/* What runs without looking at the clock: a minute or so of plain loops, a hundred times the
 * largest row of real models. */
static const uint64_t max_row_work = UINT64_C(1) << 36;

/* A call under examination, with what a message needs to say where. */
typedef struct {
    const nd_program *program;
    const nd_instruction *at;
    nd_kernel_info info;
    nd_text *detail;
} subject;

static NeutronError refuse(const subject *s, NeutronError error, const char *what, uint32_t value) {
    nd_text_append(s->detail, "byte %u: %s: %s %u", s->at->offset, s->info.name, what, value);
    return error;
}

static NeutronError refuse_operand(const subject *s, NeutronError error, uint32_t operand,
                                   const char *what, uint32_t value) {
    nd_text_append(s->detail, "byte %u: %s: operand %u: %s %u", s->at->offset, s->info.name,
                   operand, what, value);
    return error;
}

static NeutronError check_kernel(const subject *s, const NeutronCallRecord *call) {
    const uint32_t head = sizeof(NeutronInstructionRecord) + sizeof(NeutronCallRecord);
    const uint32_t bytes = head + s->info.operands * (uint32_t)sizeof(NeutronOperandRecord);
    if (call->abi != s->info.abi)
        return refuse(s, NEUTRON_ERROR_KERNEL_ABI, "calling convention", call->abi);
    if (s->at->operands != s->info.operands) {
        return refuse(s, NEUTRON_ERROR_INSTRUCTION, "number of operands is", s->at->operands);
    }
    if (s->at->words != bytes / sizeof(uint32_t) + s->info.params) {
        return refuse(s, NEUTRON_ERROR_INSTRUCTION, "length in words is", s->at->words);
    }
    if (call->rounding > NEUTRON_ROUNDING_SINGLE) {
        return refuse(s, NEUTRON_ERROR_INSTRUCTION, "unknown rounding mode", call->rounding);
    }
    if (call->rows == 0) return refuse(s, NEUTRON_ERROR_INSTRUCTION, "rows per call:", call->rows);
    return NEUTRON_NONE;
}

static NeutronError check_operand(const subject *s, uint32_t operand) {
    const NeutronOperandRecord o = nd_operand_record(s->at, operand);
    const uint32_t mask = (uint32_t)1 << operand;
    if (o.channels == 0) {
        return s->info.optional & mask
                   ? NEUTRON_NONE
                   : refuse_operand(s, NEUTRON_ERROR_OPERAND, operand, "channels:", o.channels);
    }
    if (nd_item_bytes(o.dtype) == 0)
        return refuse_operand(s, NEUTRON_ERROR_OPERAND, operand, "unknown type", o.dtype);
    if (o.reserved)
        return refuse_operand(s, NEUTRON_ERROR_OPERAND, operand, "reserved byte is", o.reserved);
    if (o.ring == 0 || !nd_elements_bounded(&o)) {
        nd_text_append(
            s->detail, "byte %u: %s: operand %u: %u x %u x %u x %u elements in a ring of %u rows",
            s->at->offset, s->info.name, operand, o.batch, o.height, o.width, o.channels, o.ring);
        return NEUTRON_ERROR_OPERAND;
    }
    if (!nd_operand_aligned(&o)) {
        return refuse_operand(s, NEUTRON_ERROR_OPERAND, operand,
                              "elements would be misaligned from offset", o.offset);
    }
    const uint64_t bytes = nd_region_bytes(s->program, o.region, o.index);
    if (bytes == 0 || !nd_range_inside(bytes, o.offset, nd_item_bytes(o.dtype))) {
        nd_text_append(s->detail,
                       "byte %u: %s: operand %u: offset %u in region %u, index %u, of %llu bytes",
                       s->at->offset, s->info.name, operand, o.offset, o.region, o.index,
                       (unsigned long long)bytes);
        return NEUTRON_ERROR_ADDRESS;
    }
    const int writable = o.region == NEUTRON_REGION_OUTPUT || o.region == NEUTRON_REGION_SCRATCH ||
                         o.region == NEUTRON_REGION_TCM || o.region == NEUTRON_REGION_STATE;
    if (s->info.written & mask && !writable) {
        return refuse_operand(s, NEUTRON_ERROR_WRITE_PROTECTED, operand, "is written in region",
                              o.region);
    }
    return NEUTRON_NONE;
}

NeutronError nd_check_call(const nd_program *program, const nd_instruction *at, uint32_t *called,
                           uint64_t *work, nd_text *detail) {
    NeutronCallRecord record;
    nk_call call;
    subject s = {program, at, {.name = NULL}, detail};
    if (at->words * sizeof(uint32_t) < sizeof(NeutronInstructionRecord) + sizeof record) {
        nd_text_append(detail, "byte %u: a call of %u words", at->offset, at->words);
        return NEUTRON_ERROR_INSTRUCTION;
    }
    nd_body(at, &record, sizeof record);
    if (!nd_kernel(record.kernel, &s.info) || !nd_kernel_linked(record.kernel)) {
        nd_text_append(detail, "byte %u: kernel %u (%s)", at->offset, record.kernel,
                       s.info.name ? s.info.name : "unknown here");
        return NEUTRON_ERROR_KERNEL_MISSING;
    }
    NeutronError error = check_kernel(&s, &record);
    for (uint32_t operand = 0; error == NEUTRON_NONE && operand < s.info.operands; operand++) {
        error = check_operand(&s, operand);
    }
    if (error != NEUTRON_NONE) return error;

    nd_decode_call(program, NULL, at, &call, &record);
    const nk_operand *output = &call.operands[s.info.output];
    call.row1 = (int32_t)output->height;
    if (neutronKernels[record.kernel](NK_CHECK, &call) != 0) {
        nd_text_append(detail, "byte %u: %s: %s", at->offset, s.info.name,
                       call.why ? call.why : "refused without a reason");
        return NEUTRON_ERROR_KERNEL_REFUSED;
    }
    *work = nd_call_work(&call, &s.info, record.rows);
    if (nd_row_work(&call, &s.info) > max_row_work) {
        nd_text_append(detail, "byte %u: %s: one row of the output takes more than 2^36 operations",
                       at->offset, s.info.name);
        return NEUTRON_ERROR_CALL_COUNT;
    }
    called[record.kernel / 32] |= (uint32_t)1 << record.kernel % 32;
    return NEUTRON_NONE;
}
