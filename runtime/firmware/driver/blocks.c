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
    return (uint32_t)sizeof(uint32_t) * b->columns * b->units * blocks;
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
    nd_section s;
    if (weights.region != NEUTRON_REGION_WEIGHTS || table.region != NEUTRON_REGION_WEIGHTS ||
        !nd_section_at(program, weights.offset, &s))
        return false;
    if (s.blocks == 0 || s.record.packing != NEUTRON_PACKING_DENSE || s.record.groups != 1 ||
        s.record.channels != out->channels || weights.offset != s.plain)
        return false;
    b->weights = weights.offset;
    b->table = table.offset;
    b->channels = out->channels;
    b->units = s.units;
    b->block_bytes = s.block_bytes;
    b->padded = s.blocks * s.units;
    const uint64_t bytes = nk_bytes(&call->operands[TABLE]);
    b->columns = (uint32_t)(bytes / sizeof(uint32_t) / b->padded);
    if (b->columns < 1 || b->columns > MOST_COLUMNS ||
        bytes != (uint64_t)b->padded * b->columns * sizeof(uint32_t) ||
        !nd_section_at(program, table.offset, &s))
        return false;
    const uint32_t before = table.offset - s.plain;
    if (s.record.storage == NEUTRON_STORAGE_RAW)
        return before < s.record.plain && bytes <= s.record.plain - before;
    return s.record.storage == NEUTRON_STORAGE_COLUMNS && before == 0 && s.record.plain == bytes &&
           s.record.parameter == b->columns;
}

/* The call for so many blocks; addresses are left as they are. */
static void cut(const nd_blocks *b, const nd_kernel_info *info, uint32_t blocks, nk_call *call) {
    const uint32_t left = b->channels - b->next * b->units;
    nk_operand *weights = &call->operands[info->weights], *table = &call->operands[TABLE],
               *out = &call->operands[info->output];
    call->place = NULL; /* nothing of it may be kept for the next one */
    out->channels = left < blocks * b->units ? left : blocks * b->units;
    weights->available = weights->channels = blocks * b->block_bytes;
    table->available = table->channels = table_bytes(b, blocks);
}

static uint32_t least_bytes(const nd_blocks *b) {
    return aligned(b->block_bytes) + aligned(table_bytes(b, 1));
}

uint32_t nd_block_bytes(const nd_program *program, const nd_instruction *at,
                        const nd_kernel_info *info, nk_call *call) {
    nd_blocks b;
    if (!found(program, at, info, call, &b)) return UINT32_MAX;
    cut(&b, info, 1, call);
    return neutronKernels[call->kernel](NK_CHECK, call) == 0 ? least_bytes(&b) : UINT32_MAX;
}

void nd_begin_blocks(const struct NeutronModel *model, const nd_instruction *at,
                     const nd_kernel_info *info, const nk_call *call, nd_blocks *b) {
    (void)found(&model->program, at, info, call, b); /* checked before */
    b->row0 = call->row0, b->row1 = call->row1;
    b->at_once = model->window_bytes / least_bytes(b);
}

/* Functions of their own, so that the stack holds what one of them needs. */
static void decode_weights(const struct NeutronModel *model, const nd_blocks *b, uint32_t blocks) {
    nd_section s;
    (void)nd_section_at(&model->program, b->weights, &s);
    (void)nd_decode_weights(&s, model->program.stored + s.stored, b->next, blocks, model->window);
}

static void decode_table(const struct NeutronModel *model, const nd_blocks *b, uint32_t blocks,
                         uint8_t *to) {
    const size_t word = sizeof(uint32_t);
    const uint32_t first = b->next * b->units, count = blocks * b->units;
    nd_section s;
    (void)nd_section_at(&model->program, b->table, &s);
    const uint8_t *from = model->program.stored + s.stored;
    if (s.record.storage == NEUTRON_STORAGE_COLUMNS) {
        (void)nd_decode_columns(&s, from, first, count, to);
        return;
    }
    from += b->table - s.plain;
    for (uint32_t column = 0; column < b->columns; column++)
        memcpy(to + column * count * word, from + ((size_t)column * b->padded + first) * word,
               count * word);
}

bool nd_next_blocks(const struct NeutronModel *model, const nd_kernel_info *info, nd_blocks *b,
                    nk_call *call) {
    const uint32_t left = (b->padded / b->units) - b->next;
    const uint32_t blocks = left < b->at_once ? left : b->at_once;
    nk_operand *out = &call->operands[info->output];
    if (blocks == 0) return false;
    if (b->next) out->data += (size_t)out->channels * nk_item_bytes(out); /* behind those before */
    cut(b, info, blocks, call);
    call->row0 = b->row0, call->row1 = b->row1;
    call->operands[info->weights].data = model->window;
    call->operands[TABLE].data = model->window + aligned(blocks * b->block_bytes);
    decode_weights(model, b, blocks);
    decode_table(model, b, blocks, call->operands[TABLE].data);
    b->next += blocks;
    return true;
}
