#include "held.h"

#if ND_THREADS

enum { LINE = 64 };

void nd_held_clear(nd_held *held) { held->taken_count = 0; }

/* Where the room that begins at `at` is taken until; `at` where it is free. */
static int64_t taken_until(const nd_held *held, int64_t at, int64_t bytes) {
    const nd_span wanted = {at, at + bytes};
    for (uint32_t i = 0; i < held->lent_count; i++)
        if (nd_overlap(held->lent[i].place, wanted)) return held->lent[i].place.end;
    for (uint32_t i = 0; i < held->taken_count; i++)
        if (nd_overlap(held->taken[i], wanted)) return held->taken[i].end;
    return at;
}

/* The first gap that is large enough. */
bool nd_held_take(nd_held *held, const nk_operand *o, int64_t rows, uint32_t *at) {
    const uint64_t bytes = ((uint64_t)rows * o->pitch + LINE - 1) / LINE * LINE;
    int64_t first = 0, end;
    if (held->taken_count == ND_MOST_TAKEN || bytes > held->room) return false;
    while ((end = taken_until(held, first, (int64_t)bytes)) != first) first = end;
    if (first + (int64_t)bytes > held->room) return false;
    held->taken[held->taken_count++] = (nd_span){first, first + (int64_t)bytes};
    *at = (uint32_t)first;
    return true;
}

void nd_held_keep(nd_held *held) {
    for (uint32_t i = 0; i < held->taken_count; i++)
        held->most = (uint32_t)nd_larger(held->most, held->taken[i].end);
}

void nd_held_lend(nd_held *held, const nd_item *item, uint32_t at) {
    const nk_operand *o = nd_output(item);
    const int64_t bytes = ((int64_t)o->height * o->pitch + LINE - 1) / LINE * LINE;
    held->lent[held->lent_count++] =
        (nd_lent){item, {at, at + bytes}, nd_all_bytes(item, item->info.output), true};
}

void nd_held_drop(nd_held *held, uint32_t lent) {
    held->lent_count--;
    for (uint32_t i = lent; i < held->lent_count; i++) held->lent[i] = held->lent[i + 1];
}

const nd_lent *nd_held_find(const nd_held *held, const nd_item *item, uint32_t operand) {
    if (operand == item->info.output || !nd_follows(item, operand)) return NULL;
    for (uint32_t i = 0; i < held->lent_count; i++) {
        const nd_lent *l = &held->lent[i];
        if (l->whole && nd_same_elements(item, operand, l->item, l->item->info.output)) return l;
    }
    return NULL;
}

/* Whether the call leaves of the owed bytes one piece, and which. */
static bool overwrites_well(const nd_lent *lent, const nd_item *item, nd_span bytes) {
    const nd_span sure = nd_surely_written(item);
    nd_span left;
    return sure.first == bytes.first && sure.end == bytes.end &&
           nd_remaining(lent->owed, sure, &left);
}

bool nd_held_needed(const nd_lent *lent, const nd_item *item, bool lending) {
    const nd_span out = nd_all_rows(item);
    if (nd_empty(out)) return false;
    for (uint32_t x = 0; x < item->call.operand_count; x++) {
        if (!nd_same_region(&item->call.operands[x], nd_output(lent->item))) continue;
        const nd_span bytes = nd_bytes_of(item, x, nd_touched(item, x, out));
        if (!nd_overlap(bytes, lent->owed)) continue;
        const bool fine = x == item->info.output
                              ? overwrites_well(lent, item, bytes)
                              : lending && lent->whole && nd_follows(item, x) &&
                                    nd_same_elements(item, x, lent->item, lent->item->info.output);
        if (!fine) return true;
    }
    return false;
}

void nd_held_written(nd_held *held, const nd_item *item) {
    if (nd_empty(nd_all_rows(item))) return;
    const nd_span sure = nd_surely_written(item);
    for (uint32_t i = held->lent_count; i-- > 0;) {
        nd_lent *l = &held->lent[i];
        if (!nd_same_region(nd_output(item), nd_output(l->item)) || !nd_overlap(sure, l->owed))
            continue;
        (void)nd_remaining(l->owed, sure, &l->owed); /* asked before */
        l->whole = false;
        if (nd_empty(l->owed)) nd_held_drop(held, i);
    }
}

#endif
