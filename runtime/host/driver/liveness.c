#include "liveness.h"

#if ND_THREADS

enum { PIECES = 16 };

uint32_t nd_loop_length(const nd_item *loop) {
    NeutronLoopRecord record;
    nd_body(&loop->at, &record, sizeof record);
    const nd_item *i = loop + 1;
    for (uint32_t words = 0; words < record.body_words; i++) words += i->at.words;
    return (uint32_t)(i - loop - 1);
}

bool nd_copy_side_overlaps(uint8_t region, uint32_t offset, uint32_t bytes, nd_span scratch) {
    return region == NEUTRON_REGION_SCRATCH &&
           nd_overlap((nd_span){offset, (int64_t)offset + bytes}, scratch);
}

/* Whether an instruction may read bytes of scratch. */
static bool reads(const nd_item *i, nd_span bytes) {
    if (i->at.opcode == NEUTRON_OPCODE_DMA) {
        NeutronDmaRecord d;
        nd_body(&i->at, &d, sizeof d);
        return nd_copy_side_overlaps(d.source_region, d.source_offset, d.bytes, bytes);
    }
    if (i->at.opcode != NEUTRON_OPCODE_CALL) return false;
    const nd_span out = nd_all_rows(i);
    if (nd_empty(out)) return false;
    for (uint32_t x = 0; x < i->call.operand_count; x++) {
        const nk_operand *o = &i->call.operands[x];
        if (!o->present || o->region != NEUTRON_REGION_SCRATCH || i->own_rings >> x & 1) continue;
        if (nd_only_written(i, x)) continue;
        if (nd_overlap(nd_bytes_of_rows(i, x, nd_rows_accessed(i, x, out)), bytes)) return true;
    }
    return false;
}

/* A set of byte ranges of scratch. */
typedef struct {
    nd_span piece[PIECES];
    uint32_t count;
} pieces;

/* Subtract what an instruction always writes. A range that would be split beyond the limit stays
 * whole. */
static void overwrite(const nd_item *i, pieces *p) {
    if (i->at.opcode != NEUTRON_OPCODE_CALL || nd_output(i)->region != NEUTRON_REGION_SCRATCH)
        return;
    const nd_span sure = nd_bytes_always_written(i);
    for (uint32_t at = p->count; at-- > 0;) {
        nd_span *one = &p->piece[at];
        if (!nd_subtract(*one, sure, one) && p->count < PIECES) {
            p->piece[p->count++] = (nd_span){sure.end, one->end};
            one->end = sure.first;
        }
        if (nd_empty(*one)) *one = p->piece[--p->count];
    }
}

static bool reads_any(const nd_item *i, const pieces *p) {
    for (uint32_t at = 0; at < p->count; at++)
        if (reads(i, p->piece[at])) return true;
    return false;
}

/* In a loop, all reads count before any write. */
bool nd_is_read_later(const nd_item *from, nd_span bytes, nd_budget *budget) {
    pieces p = {{bytes}, !nd_empty(bytes)};
    for (const nd_item *i = from; i->at.opcode != NEUTRON_OPCODE_END && p.count;) {
        const uint32_t more = i->at.opcode == NEUTRON_OPCODE_LOOP ? nd_loop_length(i) : 0;
        if (!nd_spend(budget, (uint64_t)(more + 1) * p.count)) return true;
        for (uint32_t at = 0; at <= more; at++)
            if (reads_any(i + at, &p)) return true;
        for (uint32_t at = 0; at <= more; at++) overwrite(i + at, &p);
        i += more + 1;
    }
    return false;
}

#endif
