#include <string.h>

#include "formulas.h"
#include "generated/microcode.h"
#include "neutron_errors.h"

#define BASICS(id, name, abi, operands, optional, output, params, formula) \
    [id] = {1, formula, operands, output, params},
static const struct {
    uint8_t known, formula, operands, output, params;
} basics[NEUTRON_KERNEL_LIMIT] = {NEUTRON_KERNEL_TABLE(BASICS)};
#undef BASICS

/* Where a kernel keeps what the formulas ask for: positions of operands and parameter words, -1
 * when it has none. */
#define PLACES(id, written, moved, input, weights, kernel_h, kernel_w, groups, dense) \
    [id] = {moved, input, weights, kernel_h, kernel_w, groups},
static const struct {
    uint8_t moved;
    int8_t input, weights, kernel_h, kernel_w, groups;
} places[NEUTRON_KERNEL_LIMIT] = {NEUTRON_KERNEL_ROLES(PLACES)};
#undef PLACES

/* Bytes per element, by NEUTRON_DTYPE_*. */
static const uint8_t item_bytes[] = {1, 1, 2, 4, 8, 4, 1};

/* In place: records are whole words, and copies of them would cost a simulated call more than its
 * price. */
static const NeutronOperandRecord *operand_at(const uint32_t *words, uint32_t operand) {
    const size_t head =
        (sizeof(NeutronInstructionRecord) + sizeof(NeutronCallRecord)) / sizeof(uint32_t);
    return (const void *)(words + head +
                          operand * (sizeof(NeutronOperandRecord) / sizeof(uint32_t)));
}

static uint64_t bytes_of(const NeutronOperandRecord *o, uint64_t rows) {
    const uint64_t item = o->dtype < sizeof item_bytes ? item_bytes[o->dtype] : 1;
    return nm_mul(nm_mul(nm_mul(o->batch, rows), nm_mul(o->width, o->channels)), item);
}

/* Whether a call writes into the bytes of its first operand, and so leaves the rest where it is. */
static int updates_in_place(uint32_t formula, const NeutronOperandRecord *in,
                            const NeutronOperandRecord *out) {
    return formula == NEUTRON_COST_UPDATE && in->region == out->region && in->index == out->index &&
           in->offset == out->offset;
}

/* A Neutron-S computes in its TCM: rows that lie elsewhere come and go over the data mover, which
 * works beside the array on the other of two buffers, so a call takes the longer of the two.
 * Constants travel whole, weights as they are stored. */
static void move_from_outside(const nm_target *target, const uint32_t *words, uint32_t operands,
                              const NeutronOperandRecord *output, uint32_t rows, uint32_t stays,
                              int8_t weights, uint64_t stored, nm_cost *cost) {
    uint64_t bytes = 0;
    for (uint32_t at = 0; at < operands; at++) {
        const NeutronOperandRecord *o = operand_at(words, at);
        if (o->region == NEUTRON_REGION_TCM || stays >> at & 1) continue;
        const int constant =
            o->region == NEUTRON_REGION_WEIGHTS || o->region == NEUTRON_REGION_PREFETCH;
        const bool coded = stored && (int32_t)at == weights;
        const uint64_t whole = coded ? stored : bytes_of(o, o->height);
        const uint64_t share =
            output->height ? nm_ceil_div(nm_mul(whole, rows), output->height) : 0;
        bytes = nm_add(bytes, constant ? whole : share);
    }
    const uint64_t busy = nm_add(cost->compute, cost->memory),
                   moving = nm_mul(target->cost.dma_byte, bytes);
    if (moving > busy) cost->memory = nm_add(cost->memory, moving - busy);
}

static uint32_t parameter(const uint32_t *params, int8_t word) {
    return word < 0 ? 1 : params[word];
}

NeutronError nm_encoded_call_cost(const nm_target *target, const uint32_t *words, size_t count,
                                  int32_t row0, int32_t row1, uint64_t stored, nm_cost *cost) {
    NeutronInstructionRecord head;
    NeutronCallRecord call;
    if (target == NULL || words == NULL || cost == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if (count * sizeof(uint32_t) < sizeof head + sizeof call) return NEUTRON_ERROR_INSTRUCTION;
    memcpy(&head, words, sizeof head);
    memcpy(&call, words + 1, sizeof call);
    if (head.opcode != NEUTRON_OPCODE_CALL || head.words > count) return NEUTRON_ERROR_INSTRUCTION;
    if (call.kernel >= NEUTRON_KERNEL_LIMIT || !basics[call.kernel].known)
        return NEUTRON_ERROR_KERNEL_MISSING;
    const uint32_t operands = basics[call.kernel].operands;
    const size_t bytes = sizeof head + sizeof call + operands * sizeof(NeutronOperandRecord);
    const size_t before = bytes / sizeof(uint32_t); /* words */
    if (head.operands != operands || head.words != before + basics[call.kernel].params) {
        return NEUTRON_ERROR_INSTRUCTION;
    }

    const uint32_t *params = words + before;
    const NeutronOperandRecord *input = operand_at(words, (uint32_t)places[call.kernel].input);
    const NeutronOperandRecord *output = operand_at(words, basics[call.kernel].output);
    if (row0 < 0 || row1 < row0 || (uint32_t)row1 > output->height) return NEUTRON_ERROR_OPERAND;
    const uint32_t rows = (uint32_t)(row1 - row0);
    nm_work work = {
        .formula = basics[call.kernel].formula,
        .kernel_h = parameter(params, places[call.kernel].kernel_h),
        .kernel_w = parameter(params, places[call.kernel].kernel_w),
        .groups = parameter(params, places[call.kernel].groups),
        .input_channels = input->channels,
        .input_item = input->dtype < sizeof item_bytes ? item_bytes[input->dtype] : 1,
        .batch = output->batch,
        .rows = rows,
        .width = output->width,
        .channels = output->channels,
    };
    if (places[call.kernel].weights >= 0) {
        const NeutronOperandRecord *weights =
            operand_at(words, (uint32_t)places[call.kernel].weights);
        work.weight_bytes = bytes_of(weights, weights->height);
        work.stored_bytes = stored;
    }
    /* Operands that are not moved although they are activations. */
    const uint32_t stays = updates_in_place(work.formula, input, output)
                               ? 1u << places[call.kernel].input | 1u << basics[call.kernel].output
                               : 0;
    for (uint32_t at = 0; at < operands; at++) {
        if (!(places[call.kernel].moved >> at & 1) || stays >> at & 1) continue;
        /* The same share of every operand as of the output: kernels know row by row what they read,
         * this need not. */
        const NeutronOperandRecord *o = operand_at(words, at);
        const uint64_t whole = bytes_of(o, o->height);
        const uint64_t share =
            output->height ? nm_ceil_div(nm_mul(whole, rows), output->height) : 0;
        work.moved_bytes = nm_add(work.moved_bytes, share);
    }
    *cost = nm_call_cost(target, &work);
    if (target->tcm_bytes && rows)
        move_from_outside(target, words, operands, output, rows, stays, places[call.kernel].weights,
                          stored, cost);
    return NEUTRON_NONE;
}
