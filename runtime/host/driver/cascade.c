#include "cascade.h"

#if ND_THREADS

enum {
    MAX_TOGETHER = 64,
    MAX_SHARE = 2 /* one buffered output takes at most this part of the cache */
};

/* A call of a layer in one iteration: its position in the order of the microcode, and its rows. */
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
 * `only_reads`, only bytes that `b` writes and `a` reads count. */
static bool conflict(const nd_layer *a, nd_span ra, const nd_layer *b, nd_span rb,
                     bool only_reads) {
    const uint32_t ao = a->item->info.output, bo = b->item->info.output;
    for (uint32_t x = 0; x < a->item->call.operand_count; x++) {
        if (a->cached >> x & 1 || (only_reads && x == ao)) continue;
        for (uint32_t y = 0; y < b->item->call.operand_count; y++) {
            if (b->cached >> y & 1 || (only_reads && y != bo)) continue;
            if (x != ao && y != bo) continue;
            if (nd_same_region(&a->item->call.operands[x], &b->item->call.operands[y]) &&
                nd_overlap(nd_bytes_of_rows(a->item, x, nd_rows_accessed(a->item, x, ra)),
                           nd_bytes_of_rows(b->item, y, nd_rows_accessed(b->item, y, rb))))
                return true;
        }
    }
    return false;
}

/* Whether iterations [from, to) may run together, which moves the calls of layer `a` before earlier
 * calls of the later layer `b`. */
static bool layers_keep_order(const nd_cascade *c, nd_budget *budget, const nd_layer *a,
                              const nd_layer *b, uint32_t from, uint32_t to) {
    for (uint32_t late = 0; late < (to - from) * a->calls; late++) {
        const event ea = event_of(c, a, from + late / a->calls, late % a->calls);
        if (nd_empty(ea.rows)) continue;
        for (uint32_t early = 0; early < (to - from) * b->calls; early++) {
            const event eb = event_of(c, b, from + early / b->calls, early % b->calls);
            if (!nd_spend(budget, 1)) return false;
            if (eb.when >= ea.when) break;
            if (!nd_empty(eb.rows) && conflict(a, ea.rows, b, eb.rows, a == b)) return false;
        }
    }
    return true;
}

static bool group_keeps_order(const nd_cascade *c, nd_budget *budget, uint32_t from, uint32_t to) {
    for (const nd_layer *a = c->layers; a < c->layers + c->count; a++)
        for (const nd_layer *b = a; b < c->layers + c->count; b++)
            if (!layers_keep_order(c, budget, a, b, from, to)) return false;
    return true;
}

/* Whether `reader` reads, through an operand, bytes that `writer` wrote earlier in the order of the
 * microcode. */
static bool reads_after(const nd_cascade *c, nd_budget *budget, const nd_layer *reader,
                        uint32_t operand, const nd_layer *writer) {
    const nd_item *r = reader->item, *w = writer->item;
    if (!nd_same_region(&r->call.operands[operand], nd_output(w))) return false;
    for (uint32_t late = 0; late < c->iterations * reader->calls; late++) {
        const event er = event_of(c, reader, late / reader->calls, late % reader->calls);
        if (nd_empty(er.rows)) continue;
        const nd_span read = nd_bytes_of_rows(r, operand, nd_rows_accessed(r, operand, er.rows));
        for (uint32_t early = 0; early < c->iterations * writer->calls; early++) {
            const event ew = event_of(c, writer, early / writer->calls, early % writer->calls);
            if (!nd_spend(budget, 1)) return true;
            if (ew.when >= er.when) break;
            if (nd_overlap(read, nd_bytes_of_rows(w, w->info.output, ew.rows))) return true;
        }
    }
    return false;
}

/* Whether a layer of the loop reads or overwrites what `writer` wrote before. The cache can then
 * not buffer its output. */
static bool is_used_in_loop(const nd_cascade *c, nd_budget *budget, const nd_layer *writer) {
    const uint32_t output = writer->item->info.output;
    for (const nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        const uint32_t to = l->item->info.output;
        if (l != writer && nd_same_region(nd_output(l->item), nd_output(writer->item)) &&
            nd_overlap(nd_all_bytes(l->item, to), nd_all_bytes(writer->item, output)))
            return true; /* both write there: the last one counts */
        for (uint32_t x = 0; x < l->item->call.operand_count; x++)
            if (x != to && !(l->cached >> x & 1) && reads_after(c, budget, l, x, writer))
                return true;
    }
    return false;
}

/* Read cached outputs from the cache. */
static void use_cached_inputs(nd_cascade *c, const nd_row_cache *cache) {
    for (nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        for (uint32_t x = 0; x < l->item->call.operand_count; x++) {
            const nd_cached_output *output =
                l->cached >> x & 1 ? NULL : nd_cache_find(cache, l->item, x);
            if (output == NULL) continue;
            l->cached |= 1u << x;
            l->places[x] =
                (nd_cache_place){(uint32_t)output->range.first, nd_output(output->item)->height};
        }
    }
}

/* Whether the loop overwrites a cached output before one of its layers reads it. */
static bool cached_input_is_overwritten(const nd_cascade *c, const nd_row_cache *cache,
                                        nd_budget *budget) {
    for (const nd_layer *l = c->layers; l < c->layers + c->count; l++)
        for (uint32_t x = 0; x < l->item->call.operand_count; x++)
            if (nd_cache_find(cache, l->item, x) != NULL)
                for (const nd_layer *w = c->layers; w < c->layers + c->count; w++)
                    if (reads_after(c, budget, l, x, w)) return true;
    return false;
}

/* Rows that a ring needs while groups of `together` iterations run. */
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
                const nd_span in = nd_rows_accessed(l->item, x, out);
                if (!nd_empty(in))
                    most = nd_larger(most, down ? in.end - all.first : all.end - in.first);
            }
        }
    }
    return nd_smaller(most, ring->height);
}

/* Whether a layer's output overlaps its own input when groups run together. */
static bool overlaps_in_groups(const nd_cascade *c, const nd_layer *l) {
    for (uint32_t from = 0; from < c->iterations; from += c->together) {
        const uint32_t to = (uint32_t)nd_smaller(from + c->together, c->iterations);
        if (nd_overlaps_own_input(l->item, nd_layer_rows(l, from, to), l->cached)) return true;
    }
    return false;
}

/* Buffer an output that overlaps its own input in the cache. Where that is not possible, the
 * layer's calls run one by one. */
static void buffer_output(const nd_cascade *c, nd_row_cache *cache, nd_budget *budget,
                          nd_layer *l) {
    const nk_operand *out = nd_output(l->item);
    const uint32_t output = l->item->info.output;
    uint32_t at = 0;
    l->buffered = l->one_by_one = false;
    if (!l->ring) l->cached &= ~(1u << output);
    if (!overlaps_in_groups(c, l)) return;
    l->one_by_one = true;
    if (!nd_is_relocatable(out) || out->ring != out->height ||
        (uint64_t)out->height * out->pitch > cache->capacity / MAX_SHARE ||
        is_used_in_loop(c, budget, l) || !nd_cache_reserve(cache, out, out->height, &at))
        return;
    l->one_by_one = false;
    l->buffered = true;
    l->cached |= 1u << output;
    l->places[output] = (nd_cache_place){at, out->height};
}

/* Reserve a ring in the cache, for its writer and its readers. */
static bool reserve_ring(nd_cascade *c, nd_row_cache *cache, nd_budget *budget, nd_layer *l) {
    const uint32_t output = l->item->info.output;
    uint32_t at = 0;
    if (!nd_spend(budget, (uint64_t)c->iterations * c->calls)) return false;
    const int64_t ring = ring_rows(c, l);
    if (!nd_cache_reserve(cache, nd_output(l->item), ring, &at)) return false;
    l->places[output] = (nd_cache_place){at, (uint32_t)ring};
    for (nd_layer *b = l + 1; b < c->layers + c->count; b++)
        for (uint32_t x = 0; x < b->item->call.operand_count; x++)
            if (nd_same_elements(b->item, x, l->item, output)) b->places[x] = l->places[output];
    return true;
}

/* Reserve all rows; false when they do not fit, or when no layer could be merged. */
static bool reserve_rows(nd_cascade *c, nd_row_cache *cache, nd_budget *budget) {
    bool useful = false;
    nd_cache_release_reserved(cache);
    for (nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        buffer_output(c, cache, budget, l);
        useful |= !l->one_by_one;
    }
    for (nd_layer *l = c->layers; l < c->layers + c->count && useful; l++)
        if (l->ring && !reserve_ring(c, cache, budget, l)) return false;
    return useful;
}

/* Whether a single call already overlaps its own input: its result depends on the order inside the
 * kernel. */
static bool any_call_overlaps_itself(const nd_cascade *c) {
    for (uint32_t at = 0; at < c->calls; at++)
        for (uint32_t i = 0; i < c->iterations; i++)
            if (nd_overlaps_own_input(c->body + at, nd_call_rows(c->body + at, i),
                                      c->layers[c->layer_of[at]].cached))
                return true;
    return false;
}

/* Tries one group of all iterations first, then smaller groups. */
bool nd_plan_cascade(nd_cascade *c, nd_row_cache *cache, nd_budget *budget, const nd_item *body,
                     uint32_t calls, uint32_t iterations) {
    if (!nd_read_cascade(c, budget, body, calls, iterations)) return false;
    if (!nd_spend(budget, (uint64_t)iterations * calls) || any_call_overlaps_itself(c))
        return false;
    if (cached_input_is_overwritten(c, cache, budget)) return false;
    use_cached_inputs(c, cache);
    for (uint32_t groups = 1; groups < iterations; groups += (groups + 1) / 2) {
        c->together = (iterations + groups - 1) / groups;
        if (c->together < 2) return false;
        if (c->together > MAX_TOGETHER) continue;
        if (!nd_spend(budget, (uint64_t)iterations * c->count)) return false;
        if (!reserve_rows(c, cache, budget)) continue;
        bool fine = true;
        for (uint32_t from = 0; from < iterations && fine; from += c->together)
            fine = group_keeps_order(c, budget, from,
                                     (uint32_t)nd_smaller(from + c->together, iterations));
        if (fine) return true;
        if (budget->left == 0) return false;
    }
    return false;
}

#endif
