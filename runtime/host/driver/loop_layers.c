#include "loop_layers.h"

#if ND_THREADS

#include <string.h>

enum { MOST_ITERATIONS = 512 };

bool nd_spend(nd_budget *budget, uint64_t work) {
    const bool enough = budget->left >= work;
    budget->left = enough ? budget->left - work : 0;
    return enough;
}

nd_span nd_layer_rows(const nd_layer *l, uint32_t from, uint32_t to) {
    return nd_rows(l->first, l->rows, l->step, nd_output(l->item)->height, from, to);
}

/* Whether call `b` continues layer `l`: the same but for its rows, which come next. */
static bool continues(const nd_layer *l, const nd_item *b) {
    const nd_item *a = l->item;
    NeutronCallRecord same = b->record;
    const int64_t next = (int64_t)a->record.rows * l->calls,
                  first = a->record.first_row + (a->record.row_step < 0 ? -next : next);
    if (l->calls == ND_LAYER_CALLS || b->record.first_row != first || b->at.words != a->at.words ||
        b->at.operands != a->at.operands)
        return false;
    same.first_row = a->record.first_row;
    const size_t words = 1 + sizeof same / sizeof(uint32_t);
    return memcmp(&same, &a->record, sizeof same) == 0 &&
           memcmp(a->at.plain + words, b->at.plain + words,
                  (a->at.words - words) * sizeof(uint32_t)) == 0;
}

static nd_layer *layer_of(nd_cascade *c, const nd_item *call) {
    for (nd_layer *l = c->layers; l < c->layers + c->count; l++)
        if (continues(l, call)) return l;
    if (c->count == ND_LAYERS) return NULL;
    nd_layer *l = &c->layers[c->count++];
    memset(l, 0, sizeof *l);
    l->item = call;
    l->step = call->record.row_step;
    return l;
}

/* Find the layers of a body: known kernels whose rows follow each other from call to call and from
 * iteration to iteration. */
static bool find_layers(nd_cascade *c) {
    c->count = 0;
    for (uint32_t at = 0; at < c->calls; at++) {
        if (!c->body[at].by_rows || !nd_rows_are_disjoint(nd_output(c->body + at))) return false;
        nd_layer *l = layer_of(c, c->body + at);
        if (l == NULL) return false;
        c->layer_of[at] = (uint32_t)(l - c->layers);
        l->ordinal[l->calls++] = at;
    }
    for (nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        const NeutronCallRecord *last = &c->body[l->ordinal[l->calls - 1]].record;
        l->rows = l->calls * last->rows;
        l->first = l->step < 0 ? last->first_row : l->item->record.first_row;
        if (l->step == 0 || (l->step < 0 ? -l->step : l->step) != (int64_t)l->rows) return false;
    }
    return true;
}

static bool share_bytes(const nd_item *a, uint32_t x, const nd_item *b, uint32_t y) {
    return nd_same_region(&a->call.operands[x], &b->call.operands[y]) &&
           nd_overlap(nd_all_bytes(a, x), nd_all_bytes(b, y));
}

/* The rows in a ring while calls run one by one. */
typedef struct {
    bool down;
    int64_t ring;
    nd_span all, live; /* written so far; of them, still there */
} ring_state;

/* Record written rows; false where they do not follow the ones before. */
static bool ring_write(ring_state *r, nd_span out) {
    if (out.end - out.first > r->ring) return false;
    if (nd_empty(r->all)) {
        r->all = r->live = out;
        return true;
    }
    if (r->down ? out.end != r->all.first : out.first != r->all.end) return false;
    if (r->down) r->all.first = r->live.first = out.first;
    else r->all.end = r->live.end = out.end;
    if (r->down) r->live.end = nd_smaller(r->live.end, r->live.first + r->ring);
    else r->live.first = nd_larger(r->live.first, r->live.end - r->ring);
    return true;
}

/* Another call has overwritten the ring. */
static void ring_clobber(ring_state *r) {
    if (r->down) r->live.end = r->live.first;
    else r->live.first = r->live.end;
}

/* Whether every read of a ring finds rows that this loop wrote. The ring can then be moved to the
 * cache. */
static bool ring_is_read_as_written(const nd_cascade *c, const nd_layer *producer) {
    const uint32_t output = producer->item->info.output;
    ring_state r = {producer->step < 0, nd_output(producer->item)->ring, {0, 0}, {0, 0}};
    for (uint32_t at = 0; at < c->iterations * c->calls; at++) {
        const nd_item *call = c->body + at % c->calls;
        const nd_layer *l = c->layers + c->layer_of[at % c->calls];
        const nd_span out = nd_call_rows(call, at / c->calls);
        if (nd_empty(out)) continue;
        if (l == producer) {
            if (!ring_write(&r, out)) return false;
            continue;
        }
        for (uint32_t x = 0; x < call->call.operand_count; x++) {
            if (!nd_same_elements(call, x, producer->item, output)) continue;
            const nd_span in = nd_rows_accessed(call, x, out);
            if (!nd_empty(in) && (in.first < r.live.first || in.end > r.live.end)) return false;
        }
        if (share_bytes(call, call->info.output, producer->item, output)) ring_clobber(&r);
    }
    return true;
}

static bool is_ring(const nd_layer *l) {
    return nd_output(l->item)->ring != nd_output(l->item)->height;
}

/* Whether an operand is another ring of this loop than `producer`'s. */
static bool of_other_ring(const nd_cascade *c, const nd_layer *producer, const nd_item *item,
                          uint32_t operand) {
    for (const nd_layer *l = c->layers; l < c->layers + c->count; l++)
        if (l != producer && is_ring(l) &&
            nd_same_elements(item, operand, l->item, l->item->info.output))
            return true;
    return false;
}

/* Mark the readers of the ring that `producer` writes; false where it cannot be moved to the cache.
 * Rings of different calls may share bytes, since each is read as it was written. */
static bool find_readers(nd_cascade *c, nd_layer *producer) {
    const uint32_t output = producer->item->info.output;
    for (nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        for (uint32_t x = 0; x < l->item->call.operand_count; x++) {
            if (l == producer && x == output) continue;
            if (!share_bytes(l->item, x, producer->item, output)) continue;
            if (l == producer) return false;
            if (nd_same_elements(l->item, x, producer->item, output)) {
                if (l < producer || x == l->item->info.output || !nd_rows_follow_output(l->item, x))
                    return false;
                l->cached |= 1u << x;
            } else if (of_other_ring(c, producer, l->item, x)) {
                producer->shares = true;
            } else {
                return false;
            }
        }
    }
    return true;
}

/* Mark the rings that layers of this loop write, and their readers. */
static bool find_rings(nd_cascade *c, nd_budget *budget) {
    for (nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        if (!is_ring(l)) continue;
        if (!nd_is_relocatable(nd_output(l->item)) || !find_readers(c, l)) return false;
        l->cached |= 1u << l->item->info.output;
        l->ring = true;
        if (!nd_spend(budget, (uint64_t)c->iterations * c->calls) || !ring_is_read_as_written(c, l))
            return false;
    }
    return true;
}

bool nd_read_cascade(nd_cascade *c, nd_budget *budget, const nd_item *body, uint32_t calls,
                     uint32_t iterations) {
    c->body = body;
    c->calls = calls;
    c->iterations = iterations;
    return iterations >= 2 && iterations <= MOST_ITERATIONS && calls <= ND_BODY_CALLS &&
           nd_spend(budget, calls) && find_layers(c) && find_rings(c, budget);
}

#endif
