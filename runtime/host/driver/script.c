#include "script.h"

#if ND_THREADS

#include <string.h>

#include "cascade.h"
#include "liveness.h"
#include "script_writer.h"

/* Most instructions of a program that gets a script. A thousand times the zoo's largest would take
 * megabytes here. */
enum { MAX_ITEMS = 16384 };
static const uint64_t max_comparisons = UINT64_C(1) << 19;

/* A script under construction. */
typedef struct {
    const nd_program *program;
    nd_item *items;
    nd_section section; /* whose size was asked for last */
    nd_budget budget;
    nd_row_cache cache;
    nd_cascade cascade;
    nd_writer out;
} builder;

/* Mark which inputs of a loop's calls are rings of the loop itself. */
static void mark_rings(builder *m, nd_item *body, uint32_t calls) {
    nd_cascade *c = &m->cascade;
    if (!nd_read_cascade(c, &m->budget, body, calls, body->iterations)) return;
    for (uint32_t at = 0; at < calls; at++) {
        const nd_layer *l = &c->layers[c->layer_of[at]];
        body[at].own_rings = l->cached & ~(1u << l->item->info.output);
    }
}

/* Remove an output from the cache, and write its dirty bytes back where a later instruction reads
 * them. */
static bool write_back_output(builder *m, uint32_t index, const nd_item *before) {
    const nd_cached_output l = m->cache.outputs[index];
    nd_cache_remove(&m->cache, index);
    const uint32_t height = nd_output(l.item)->height;
    if (!nd_is_read_later(before, l.dirty, &m->budget)) return true;
    return nd_add_write_back(&m->out, l.item, (nd_cache_place){(uint32_t)l.range.first, height},
                             (nd_span){0, height}, l.dirty);
}

static bool needs_write_back(const nd_cached_output *l, const nd_item *i, bool from_cache) {
    if (i->at.opcode == NEUTRON_OPCODE_CALL) return nd_cache_needs_write_back(l, i, from_cache);
    if (i->at.opcode != NEUTRON_OPCODE_DMA) return false;
    NeutronDmaRecord d;
    nd_body(&i->at, &d, sizeof d);
    return nd_copy_side_overlaps(d.source_region, d.source_offset, d.bytes, l->dirty) ||
           nd_copy_side_overlaps(d.target_region, d.target_offset, d.bytes, l->dirty);
}

/* Write back, before instructions [from, from + count), the cached outputs that they need in
 * scratch. With `from_cache`, reads that the cache can serve do not count. */
static bool write_back_before(builder *m, const nd_item *from, uint32_t count, bool from_cache) {
    for (uint32_t index = m->cache.output_count; index-- > 0;) {
        bool needed = false;
        for (const nd_item *i = from; i < from + count && !needed; i++)
            needed = needs_write_back(&m->cache.outputs[index], i, from_cache);
        if (needed && !write_back_output(m, index, from)) return false;
    }
    return true;
}

static void note_writes(builder *m, const nd_item *from, uint32_t count) {
    for (const nd_item *i = from; i < from + count; i++)
        if (i->at.opcode == NEUTRON_OPCODE_CALL) nd_cache_note_write(&m->cache, i);
}

/* Cycles of one call for `rows` rows; false where it has no price. */
static bool price(builder *m, const nd_item *i, int64_t rows, uint64_t *cycles) {
    uint32_t offset = 0;
    const uint64_t bytes = nd_loaded_weights(&i->at, &i->info, &i->call, &offset);
    const uint32_t stored = bytes ? nd_stored_bytes(m->program, &m->section, offset, bytes) : 0;
    nm_cost cost;
    if (nm_encoded_call_cost(m->program->target, i->at.plain, i->at.words, 0, (int32_t)rows, stored,
                             &cost) != NEUTRON_NONE)
        return false;
    *cycles = nm_cycles(&cost);
    return true;
}

/* Cycles of a loop's calls. */
static bool price_loop(builder *m, const nd_cascade *c, uint64_t *cycles) {
    *cycles = 0;
    for (const nd_item *call = c->body; call < c->body + c->calls; call++) {
        int64_t priced = 0;
        uint64_t one = 0;
        for (uint32_t i = 0; i < c->iterations; i++) {
            const nd_span out = nd_call_rows(call, i);
            const int64_t rows = out.end - out.first;
            if (rows == 0) continue;
            if (rows != priced && !price(m, call, rows, &one)) return false;
            priced = rows;
            *cycles += one;
        }
    }
    return true;
}

/* A layer for iterations [from, to): in one call, or as the microcode makes them. */
static bool add_layer_calls(builder *m, const nd_cascade *c, uint32_t at, uint32_t call,
                            uint32_t from, uint32_t to) {
    const nd_layer *l = &c->layers[at];
    const uint32_t calls = l->one_by_one ? (to - from) * l->calls : 1;
    for (uint32_t i = 0; i < calls; i++) {
        const nd_span rows =
            l->one_by_one ? nd_call_rows(c->body + l->ordinal[i % l->calls], from + i / l->calls)
                          : nd_layer_rows(l, from, to);
        if (!nd_empty(rows) && !nd_add_step(&m->out, ND_STEP_CALL, call, rows, 0)) return false;
    }
    return true;
}

/* The calls of a planned loop, group by group. */
static bool add_groups(builder *m, const nd_cascade *c, uint64_t cycles) {
    uint32_t calls[ND_LAYERS];
    const uint32_t first = m->out.step_count;
    for (uint32_t at = 0; at < c->count; at++)
        calls[at] =
            nd_add_call(&m->out, c->layers[at].item, c->layers[at].cached, c->layers[at].places);
    for (uint32_t from = 0; from < c->iterations; from += c->together)
        for (uint32_t at = 0; at < c->count; at++)
            if (!add_layer_calls(m, c, at, calls[at], from,
                                 (uint32_t)nd_smaller(from + c->together, c->iterations)))
                return false;
    if (m->out.step_count > first) m->out.steps[first].cycles = cycles;
    return true;
}

/* Whether no later instruction reads rings that share bytes: the cache has no record of which ring
 * wrote them last. */
static bool rings_end(builder *m, const nd_cascade *c, const nd_item *next) {
    for (const nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        if (!l->shares) continue;
        if (nd_output(l->item)->region != NEUTRON_REGION_SCRATCH ||
            nd_is_read_later(next, nd_all_bytes(l->item, l->item->info.output), &m->budget))
            return false;
    }
    return true;
}

/* The rows that a ring would contain after the loop. */
static nd_span ring_left(const nd_layer *l, uint32_t iterations) {
    const int64_t ring = nd_output(l->item)->ring;
    nd_span rows = nd_layer_rows(l, 0, iterations);
    if (rows.end - rows.first > ring) {
        if (l->step > 0) rows.first = rows.end - ring;
        else rows.end = rows.first + ring;
    }
    return rows;
}

/* After a loop: keep its buffered outputs in the cache, and write rings back where a later
 * instruction reads them. */
static bool leave_loop(builder *m, const nd_cascade *c, const nd_item *next) {
    for (const nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        const uint32_t output = l->item->info.output;
        const nk_operand *out = nd_output(l->item);
        const nd_span bytes = nd_all_bytes(l->item, output);
        const nd_span rows =
            l->ring ? ring_left(l, c->iterations) : nd_layer_rows(l, 0, c->iterations);
        if ((!l->ring && !l->buffered) || l->shares || nd_empty(rows)) continue;
        const bool scratch = out->region == NEUTRON_REGION_SCRATCH;
        if (l->buffered && scratch && rows.first == 0 && rows.end == out->height &&
            m->cache.output_count < ND_MAX_CACHED_OUTPUTS) {
            nd_cache_insert(&m->cache, l->item, l->places[output].at);
            continue;
        }
        if ((!scratch || nd_is_read_later(next, bytes, &m->budget)) &&
            !nd_add_write_back(&m->out, l->item, l->places[output], rows, bytes))
            return false;
    }
    return true;
}

/* Plan a loop that reads cached outputs, or, where that fails, one without them. */
static bool plan(builder *m, const nd_item *body, uint32_t calls) {
    nd_cascade *c = &m->cascade;
    const uint32_t iterations = body->iterations;
    if (nd_plan_cascade(c, &m->cache, &m->budget, body, calls, iterations)) return true;
    nd_cache_release_reserved(&m->cache);
    if (!write_back_before(m, body, calls, false)) return false;
    if (nd_plan_cascade(c, &m->cache, &m->budget, body, calls, iterations)) return true;
    nd_cache_release_reserved(&m->cache);
    return false;
}

/* Remove cached outputs that no later instruction reads. */
static void drop_dead_outputs(builder *m, const nd_item *before) {
    for (uint32_t index = m->cache.output_count; index-- > 0;)
        if (!nd_is_read_later(before, m->cache.outputs[index].dirty, &m->budget))
            nd_cache_remove(&m->cache, index);
}

/* Add a loop with `calls` instructions; steps of a plan that fails are discarded. */
static bool add_loop(builder *m, const nd_item *loop, uint32_t calls) {
    const nd_item *body = loop + 1;
    uint64_t cycles = 0;
    drop_dead_outputs(m, loop);
    if (!write_back_before(m, body, calls, true)) return false;
    if (plan(m, body, calls) && rings_end(m, &m->cascade, body + calls) &&
        price_loop(m, &m->cascade, &cycles)) {
        const nd_writer before = m->out;
        if (add_groups(m, &m->cascade, cycles)) {
            nd_cache_commit(&m->cache);
            note_writes(m, body, calls);
            return leave_loop(m, &m->cascade, body + calls);
        }
        m->out = before;
    }
    if (!write_back_before(m, body, calls, false)) return false;
    note_writes(m, body, calls);
    return nd_add_step(&m->out, ND_STEP_MICROCODE, loop->at.offset, (nd_span){0, 0}, 0);
}

/* Add a call outside of loops. */
static bool add_call(builder *m, const nd_item *i) {
    const nd_span rows = nd_call_rows(i, 0);
    nd_cache_place places[NEUTRON_MAX_OPERANDS];
    uint32_t cached = 0;
    uint64_t cycles = 0;
    if (nd_empty(rows)) return true;
    if (!write_back_before(m, i, 1, i->by_rows && !nd_overlaps_own_input(i, rows, 0))) return false;
    for (uint32_t x = 0; x < i->call.operand_count; x++) {
        const nd_cached_output *l = i->by_rows ? nd_cache_find(&m->cache, i, x) : NULL;
        if (l == NULL) continue;
        cached |= 1u << x;
        places[x] = (nd_cache_place){(uint32_t)l->range.first, nd_output(l->item)->height};
    }
    const bool good =
        price(m, i, rows.end - rows.first, &cycles) &&
        nd_add_step(&m->out, ND_STEP_CALL, nd_add_call(&m->out, i, cached, places), rows, cycles);
    note_writes(m, i, 1);
    return good;
}

static bool add(builder *m, const nd_item *i, uint32_t length) {
    nd_cache_release_reserved(&m->cache);
    if (i->at.opcode == NEUTRON_OPCODE_LOOP) return add_loop(m, i, length);
    if (i->at.opcode == NEUTRON_OPCODE_CALL) return add_call(m, i);
    return write_back_before(m, i, 1, false) &&
           nd_add_step(&m->out, ND_STEP_MICROCODE, i->at.offset, (nd_span){0, 0}, 0);
}

/* All instructions up to the last. */
static bool add_all(builder *m) {
    const nd_item *i = m->items;
    while (i->at.opcode != NEUTRON_OPCODE_END) {
        const uint32_t length = i->at.opcode == NEUTRON_OPCODE_LOOP ? nd_loop_length(i) : 0;
        if (!add(m, i, length)) return false;
        i += length + 1;
    }
    return true;
}

static uint32_t count_items(const nd_program *program) {
    uint32_t room[ND_MAX_WORDS], offset = program->header.code_offset;
    for (uint32_t count = 1; count <= MAX_ITEMS; count++) {
        const nd_instruction at = nd_instruction_at(program, offset, room);
        if (at.opcode == NEUTRON_OPCODE_END) return count;
        offset += at.bytes;
    }
    return 0;
}

/* Decode all instructions. */
static void read_items(builder *m, uint32_t count) {
    uint32_t offset = m->program->header.code_offset;
    for (uint32_t at = 0; at < count; offset += m->items[at++].at.bytes)
        nd_decode_item(m->program, offset, &m->items[at]);
    for (nd_item *i = m->items; i < m->items + count; i++) {
        if (i->at.opcode != NEUTRON_OPCODE_LOOP) continue;
        NeutronLoopRecord loop;
        nd_body(&i->at, &loop, sizeof loop);
        const uint32_t length = nd_loop_length(i);
        for (uint32_t at = 1; at <= length; at++) i[at].iterations = loop.iterations;
        mark_rings(m, i + 1, length);
    }
}

static nd_script *build_script(const nd_program *program, uint32_t room) {
    const uint32_t count = count_items(program);
    builder *m = count ? neutronMemAlloc(NEUTRON_ALIGNMENT, sizeof *m) : NULL;
    nd_script *script = NULL;
    if (m == NULL) return NULL;
    memset(m, 0, sizeof *m);
    m->program = program;
    m->section = nd_no_section(program);
    m->budget.left = max_comparisons;
    m->cache.capacity = room;
    m->items = neutronMemAlloc(NEUTRON_ALIGNMENT, count * sizeof *m->items);
    if (m->items != NULL && nd_writer_begin(&m->out, count)) {
        read_items(m, count);
        if (add_all(m))
            script = nd_writer_script(&m->out, m->items[count - 1].at.offset,
                                      m->cache.used > ND_CACHE_BYTES ? m->cache.used : 0);
    }
    nd_writer_end(&m->out);
    neutronMemFree(m->items);
    neutronMemFree(m);
    return script;
}

nd_script *nd_script_make(const nd_program *program, bool shared) {
    nd_script *script = build_script(program, shared ? ND_SHARED_CACHE_BYTES : ND_CACHE_BYTES);
    /* On one thread, rows beyond the cache cost more than longer calls save. */
    if (script != NULL && script->cache != NULL)
        script->single_threaded = build_script(program, ND_CACHE_BYTES);
    return script;
}

void nd_script_free(nd_script *script) {
    if (script != NULL) neutronMemFree(script->single_threaded);
    neutronMemFree(script);
}

uint8_t *nd_cache_memory(const nd_script *script) {
    static _Thread_local uint8_t memory[ND_CACHE_BYTES] __attribute__((aligned(64)));
    return script->cache ? script->cache : memory;
}

#endif
