/* Calls computed for some blocks of output channels at a time, in a window too small for all of
 * their weights: each block is decoded on its own, and no output channel needs those of others. */
#include <string.h>

#include "model.h"
#include "storage.h"

enum { TABLE = NK_CONV2D_TABLE, MOST_COLUMNS = 8 };

/* Kernels whose output channels are products with packed weights, requantized by a table. */
static bool by_blocks(uint32_t kernel) {
#define IN_PLACE(name) ((uint32_t)(name) == (uint32_t)TABLE)
    _Static_assert(IN_PLACE(NK_FULLY_CONNECTED_TABLE) && IN_PLACE(NK_CONV2D16_TABLE) &&
                       IN_PLACE(NK_FULLY_CONNECTED16_TABLE) &&
                       IN_PLACE(NK_TRANSPOSE_CONV2D_TABLE) && IN_PLACE(NK_TRANSPOSE_CONV2D16_TABLE),
                   "all have their table in one place");
#undef IN_PLACE
    switch (kernel) {
    case NEUTRON_KERNEL_CONV2D:
    case NEUTRON_KERNEL_CONV2D16:
    case NEUTRON_KERNEL_FULLY_CONNECTED:
    case NEUTRON_KERNEL_FULLY_CONNECTED16:
    case NEUTRON_KERNEL_TRANSPOSE_CONV2D:
    case NEUTRON_KERNEL_TRANSPOSE_CONV2D16: return true;
    default: return false;
    }
}

static uint32_t table_bytes(const nd_blocks *b, uint32_t blocks) {
    return (uint32_t)sizeof(uint32_t) * b->columns * b->weights.units * blocks;
}

static uint32_t aligned(uint32_t size) {
    return (size + NEUTRON_ALIGNMENT - 1) / NEUTRON_ALIGNMENT * NEUTRON_ALIGNMENT;
}

/* Whether all other constants of a call are read where they are stored. */
static bool others_raw(const nd_program *program, const nd_instruction *at,
                       const nd_kernel_info *info, const nk_call *call) {
    for (uint32_t operand = 0; operand < at->operands; operand++) {
        const nk_operand *o = &call->operands[operand];
        nd_section s;
        if (operand == TABLE || (int32_t)operand == info->weights || !o->present ||
            o->region != NEUTRON_REGION_WEIGHTS)
            continue;
        if (!nd_section_at(program, nd_operand_record(at, operand).offset, &s) ||
            s.record.storage != NEUTRON_STORAGE_RAW)
            return false;
    }
    return true;
}

/* Weights that are one coded section of one group, and a table of one value per channel and column.
 */
static bool found(const nd_program *program, const nd_instruction *at, const nd_kernel_info *info,
                  const nk_call *call, nd_blocks *b) {
    const nk_operand *out = &call->operands[info->output];
    memset(b, 0, sizeof *b);
    if (!by_blocks(call->kernel) || (info->groups >= 0 && call->params[info->groups] != 1) ||
        !others_raw(program, at, info, call))
        return false;
    const NeutronOperandRecord weights = nd_operand_record(at, (uint32_t)info->weights),
                               table = nd_operand_record(at, TABLE);
    if (weights.region != NEUTRON_REGION_WEIGHTS || table.region != NEUTRON_REGION_WEIGHTS ||
        !nd_section_at(program, weights.offset, &b->weights) ||
        !nd_section_at(program, table.offset, &b->table))
        return false;
    const NeutronSectionRecord *w = &b->weights.record, *t = &b->table.record;
    if (b->weights.blocks == 0 || w->packing != NEUTRON_PACKING_DENSE || w->groups != 1 ||
        w->channels != out->channels || weights.offset != b->weights.plain)
        return false;
    b->padded = b->weights.blocks * b->weights.units;
    const uint64_t bytes = nk_bytes(&call->operands[TABLE]);
    b->columns = (uint32_t)(bytes / sizeof(uint32_t) / b->padded);
    b->table_offset = table.offset - b->table.plain;
    if (b->columns < 1 || b->columns > MOST_COLUMNS ||
        bytes != (uint64_t)b->padded * b->columns * sizeof(uint32_t))
        return false;
    if (t->storage == NEUTRON_STORAGE_RAW)
        return b->table_offset < t->plain && bytes <= t->plain - b->table_offset;
    return t->storage == NEUTRON_STORAGE_COLUMNS && b->table_offset == 0 && t->plain == bytes &&
           t->parameter == b->columns;
}

/* The call for `blocks` blocks from the one at hand on; its constants in `memory`. */
static void cut(const nd_blocks *b, const nd_kernel_info *info, const nk_call *call,
                uint32_t blocks, uint8_t *memory, nk_call *part) {
    const uint32_t units = b->weights.units, first = b->next * units;
    const uint32_t left = call->operands[info->output].channels - first;
    nk_operand *weights = &part->operands[info->weights], *table = &part->operands[TABLE],
               *out = &part->operands[info->output];
    *part = *call;
    part->place = NULL; /* nothing of it may be kept for the next one */
    out->channels = left < blocks * units ? left : blocks * units;
    weights->available = weights->channels = blocks * b->weights.block_bytes;
    table->available = table->channels = table_bytes(b, blocks);
    if (memory == NULL) return;
    out->data += (size_t)first * nk_item_bytes(out);
    weights->data = memory;
    table->data = memory + aligned(weights->channels);
}

uint32_t nd_block_bytes(const nd_program *program, const nd_instruction *at,
                        const nd_kernel_info *info, const nk_call *call) {
    nd_blocks b;
    nk_call part;
    if (!found(program, at, info, call, &b)) return UINT32_MAX;
    cut(&b, info, call, 1, NULL, &part);
    if (neutronKernels[call->kernel](NK_CHECK, &part) != 0) return UINT32_MAX;
    return aligned(b.weights.block_bytes) + aligned(table_bytes(&b, 1));
}

void nd_begin_blocks(const struct NeutronModel *model, const nd_instruction *at,
                     const nd_kernel_info *info, const nk_call *call, nd_blocks *b) {
    (void)found(&model->program, at, info, call, b); /* checked before */
    b->info = info;
    b->row0 = call->row0, b->row1 = call->row1;
    b->at_once =
        model->window_bytes / (aligned(b->weights.block_bytes) + aligned(table_bytes(b, 1)));
}

bool nd_next_blocks(const struct NeutronModel *model, const nk_call *call, nd_blocks *b,
                    nk_call *part) {
    const uint32_t left = b->weights.blocks - b->next;
    const uint32_t blocks = left < b->at_once ? left : b->at_once;
    if (blocks == 0) return false;
    const uint32_t units = b->weights.units, first = b->next * units, count = blocks * units;
    const uint8_t *stored = model->program.stored;
    cut(b, b->info, call, blocks, model->window, part);
    part->row0 = b->row0, part->row1 = b->row1;
    (void)nd_decode_weights(&b->weights, stored + b->weights.stored, b->next, blocks,
                            model->window);
    uint8_t *table = part->operands[TABLE].data;
    if (b->table.record.storage == NEUTRON_STORAGE_COLUMNS) {
        (void)nd_decode_columns(&b->table, stored + b->table.stored, first, count, table);
    } else {
        const size_t word = sizeof(uint32_t);
        for (uint32_t column = 0; column < b->columns; column++)
            memcpy(table + column * count * word,
                   stored + b->table.stored + b->table_offset +
                       ((size_t)column * b->padded + first) * word,
                   count * word);
    }
    b->next += blocks;
    return true;
}
