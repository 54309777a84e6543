#include "cascade.h"

#if ND_THREADS

enum {
    MOST_TOGETHER = 64,
    LENT_PART = 2 /* an output that is lent takes no more than such a part of the memory */
};

/* A call of a layer in an iteration: when it runs, and the rows that it makes. */
typedef struct {
    uint64_t when;
    nd_span rows;
} event;

static event event_of(const nd_cascade *c, const nd_layer *l, uint32_t iteration, uint32_t part) {
    const uint32_t ordinal = l->ordinal[part];
    return (event){(uint64_t)iteration * c->calls + ordinal,
                   nd_call_rows(c->body + ordinal, iteration)};
}

/* Whether call `a` for output rows `ra` and `b` for `rb` touch the same bytes, one writing; with
 * `reads`, only bytes that `b` writes and `a` reads count. */
static bool conflict(const nd_layer *a, nd_span ra, const nd_layer *b, nd_span rb, bool reads) {
    const uint32_t ao = a->item->info.output, bo = b->item->info.output;
    for (uint32_t x = 0; x < a->item->call.operand_count; x++) {
        if (a->held >> x & 1 || (reads && x == ao)) continue;
        for (uint32_t y = 0; y < b->item->call.operand_count; y++) {
            if (b->held >> y & 1 || (reads && y != bo)) continue;
            if (x != ao && y != bo) continue;
            if (nd_same_region(&a->item->call.operands[x], &b->item->call.operands[y]) &&
                nd_overlap(nd_bytes_of(a->item, x, nd_touched(a->item, x, ra)),
                           nd_bytes_of(b->item, y, nd_touched(b->item, y, rb))))
                return true;
        }
    }
    return false;
}

/* Running iterations [from, to) together moves the calls of a layer before those that later layers
 * made before them. */
static bool layer_may_move(const nd_cascade *c, nd_effort *effort, const nd_layer *a,
                           const nd_layer *b, uint32_t from, uint32_t to) {
    for (uint32_t late = 0; late < (to - from) * a->calls; late++) {
        const event ea = event_of(c, a, from + late / a->calls, late % a->calls);
        if (nd_empty(ea.rows)) continue;
        for (uint32_t early = 0; early < (to - from) * b->calls; early++) {
            const event eb = event_of(c, b, from + early / b->calls, early % b->calls);
            if (!nd_pay(effort, 1)) return false;
            if (eb.when >= ea.when) break;
            if (!nd_empty(eb.rows) && conflict(a, ea.rows, b, eb.rows, a == b)) return false;
        }
    }
    return true;
}

static bool may_move_up(const nd_cascade *c, nd_effort *effort, uint32_t from, uint32_t to) {
    for (const nd_layer *a = c->layers; a < c->layers + c->count; a++)
        for (const nd_layer *b = a; b < c->layers + c->count; b++)
            if (!layer_may_move(c, effort, a, b, from, to)) return false;
    return true;
}

/* Whether `reader` reads bytes of an operand that `writer` wrote before, in the order of the
 * iterations one by one. */
static bool reads_after(const nd_cascade *c, nd_effort *effort, const nd_layer *reader,
                        uint32_t operand, const nd_layer *writer) {
    const nd_item *r = reader->item, *w = writer->item;
    if (!nd_same_region(&r->call.operands[operand], nd_output(w))) return false;
    for (uint32_t late = 0; late < c->iterations * reader->calls; late++) {
        const event er = event_of(c, reader, late / reader->calls, late % reader->calls);
        if (nd_empty(er.rows)) continue;
        const nd_span read = nd_bytes_of(r, operand, nd_touched(r, operand, er.rows));
        for (uint32_t early = 0; early < c->iterations * writer->calls; early++) {
            const event ew = event_of(c, writer, early / writer->calls, early % writer->calls);
            if (!nd_pay(effort, 1)) return true;
            if (ew.when >= er.when) break;
            if (nd_overlap(read, nd_bytes_of(w, w->info.output, ew.rows))) return true;
        }
    }
    return false;
}

/* Whether any layer reads what one wrote before: such an output cannot be lent to later loops only.
 */
static bool read_in_loop(const nd_cascade *c, nd_effort *effort, const nd_layer *writer) {
    const uint32_t output = writer->item->info.output;
    for (const nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        const uint32_t to = l->item->info.output;
        if (l != writer && nd_same_region(nd_output(l->item), nd_output(writer->item)) &&
            nd_overlap(nd_all_bytes(l->item, to), nd_all_bytes(writer->item, output)))
            return true; /* both write there: the last one counts */
        for (uint32_t x = 0; x < l->item->call.operand_count; x++)
            if (x != to && !(l->held >> x & 1) && reads_after(c, effort, l, x, writer)) return true;
    }
    return false;
}

/* Read lent outputs where they are held. */
static void find_lent(nd_cascade *c, const nd_held *held) {
    for (nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        for (uint32_t x = 0; x < l->item->call.operand_count; x++) {
            const nd_lent *lent = l->held >> x & 1 ? NULL : nd_held_find(held, l->item, x);
            if (lent == NULL) continue;
            l->held |= 1u << x;
            l->shadows[x] = (nd_shadow){(uint32_t)lent->place.first, nd_output(lent->item)->height};
        }
    }
}

/* Whether a lent output that some layer reads there is overwritten first in the iterations one by
 * one. */
static bool lent_is_overwritten(const nd_cascade *c, const nd_held *held, nd_effort *effort) {
    for (const nd_layer *l = c->layers; l < c->layers + c->count; l++)
        for (uint32_t x = 0; x < l->item->call.operand_count; x++)
            if (nd_held_find(held, l->item, x) != NULL)
                for (const nd_layer *w = c->layers; w < c->layers + c->count; w++)
                    if (reads_after(c, effort, l, x, w)) return true;
    return false;
}

/* Rows that a ring has to hold while groups of `together` iterations run. */
static int64_t ring_rows(const nd_cascade *c, const nd_layer *producer) {
    const bool down = producer->step < 0;
    const nk_operand *ring = nd_output(producer->item);
    const uint32_t output = producer->item->info.output;
    int64_t most = ring->ring;
    for (uint32_t from = 0; from < c->iterations; from += c->together) {
        const uint32_t to = (uint32_t)nd_smaller(from + c->together, c->iterations);
        const nd_span fresh = nd_layer_rows(producer, from, to),
                      all = nd_layer_rows(producer, 0, to);
        most = nd_larger(most, fresh.end - fresh.first);
        for (const nd_layer *l = producer + 1; l < c->layers + c->count; l++) {
            const nd_span out = nd_layer_rows(l, from, to);
            for (uint32_t x = 0; x < l->item->call.operand_count && !nd_empty(out); x++) {
                if (!nd_same_elements(l->item, x, producer->item, output)) continue;
                const nd_span in = nd_touched(l->item, x, out);
                if (!nd_empty(in))
                    most = nd_larger(most, down ? in.end - all.first : all.end - in.first);
            }
        }
    }
    return nd_smaller(most, ring->height);
}

/* Whether a layer's output lies over its own input when groups run together. */
static bool meets_itself(const nd_cascade *c, const nd_layer *l) {
    for (uint32_t from = 0; from < c->iterations; from += c->together) {
        const uint32_t to = (uint32_t)nd_smaller(from + c->together, c->iterations);
        if (nd_over_itself(l->item, nd_layer_rows(l, from, to), l->held)) return true;
    }
    return false;
}

/* An output over its own input is made elsewhere, where there is room and nothing in the loop needs
 * it; else its layer runs iteration by iteration. */
static void place_output(const nd_cascade *c, nd_held *held, nd_effort *effort, nd_layer *l) {
    const nk_operand *out = nd_output(l->item);
    const uint32_t output = l->item->info.output;
    uint32_t at = 0;
    l->lent = l->apart = false;
    if (!l->ring) l->held &= ~(1u << output);
    if (!meets_itself(c, l)) return;
    l->apart = true;
    if (!nd_may_move(out) || out->ring != out->height ||
        (uint64_t)out->height * out->pitch > held->room / LENT_PART || read_in_loop(c, effort, l) ||
        !nd_held_take(held, out, out->height, &at))
        return;
    l->apart = false;
    l->lent = true;
    l->held |= 1u << output;
    l->shadows[output] = (nd_shadow){at, out->height};
}

/* Room for a ring, which its readers share. */
static bool place_ring(nd_cascade *c, nd_held *held, nd_effort *effort, nd_layer *l) {
    const uint32_t output = l->item->info.output;
    uint32_t at = 0;
    if (!nd_pay(effort, (uint64_t)c->iterations * c->calls)) return false;
    const int64_t ring = ring_rows(c, l);
    if (!nd_held_take(held, nd_output(l->item), ring, &at)) return false;
    l->shadows[output] = (nd_shadow){at, (uint32_t)ring};
    for (nd_layer *b = l + 1; b < c->layers + c->count; b++)
        for (uint32_t x = 0; x < b->item->call.operand_count; x++)
            if (nd_same_elements(b->item, x, l->item, output)) b->shadows[x] = l->shadows[output];
    return true;
}

/* False when rows do not fit, or nothing would run together. */
static bool place_rows(nd_cascade *c, nd_held *held, nd_effort *effort) {
    bool useful = false;
    nd_held_clear(held);
    for (nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        place_output(c, held, effort, l);
        useful |= !l->apart;
    }
    for (nd_layer *l = c->layers; l < c->layers + c->count && useful; l++)
        if (l->ring && !place_ring(c, held, effort, l)) return false;
    return useful;
}

/* Calls that write over their own input as they are: what they leave depends on the order inside
 * them. */
static bool any_over_itself(const nd_cascade *c) {
    for (uint32_t at = 0; at < c->calls; at++)
        for (uint32_t i = 0; i < c->iterations; i++)
            if (nd_over_itself(c->body + at, nd_call_rows(c->body + at, i),
                               c->layers[c->layer_of[at]].held))
                return true;
    return false;
}

/* As many iterations at a time as fit. */
bool nd_plan_cascade(nd_cascade *c, nd_held *held, nd_effort *effort, const nd_item *body,
                     uint32_t calls, uint32_t iterations) {
    if (!nd_read_cascade(c, effort, body, calls, iterations)) return false;
    if (!nd_pay(effort, (uint64_t)iterations * calls) || any_over_itself(c)) return false;
    if (lent_is_overwritten(c, held, effort)) return false;
    find_lent(c, held);
    for (uint32_t groups = 1; groups < iterations; groups += (groups + 1) / 2) {
        c->together = (iterations + groups - 1) / groups;
        if (c->together < 2) return false;
        if (c->together > MOST_TOGETHER) continue;
        if (!nd_pay(effort, (uint64_t)iterations * c->count)) return false;
        if (!place_rows(c, held, effort)) continue;
        bool fine = true;
        for (uint32_t from = 0; from < iterations && fine; from += c->together)
            fine =
                may_move_up(c, effort, from, (uint32_t)nd_smaller(from + c->together, iterations));
        if (fine) return true;
        if (effort->left == 0) return false;
    }
    return false;
}

#endif
