#include "script.h"

#if ND_THREADS

#include <string.h>

#include "cascade.h"
#include "later.h"
#include "writer.h"

/* Instructions of a program; longer ones run as they are. A thousand times the zoo's largest would
 * take megabytes here. */
enum { MOST_ITEMS = 16384 };
static const uint64_t most_comparisons = UINT64_C(1) << 19;

/* What is being made. */
typedef struct {
    const nd_program *program;
    nd_item *items;
    nd_section section; /* whose size was asked for last */
    nd_effort effort;
    nd_held held;
    nd_cascade cascade;
    nd_writer out;
} maker;

/* Mark what a loop reads of its own rings. */
static void mark_rings(maker *m, nd_item *body, uint32_t calls) {
    nd_cascade *c = &m->cascade;
    if (!nd_read_cascade(c, &m->effort, body, calls, body->iterations)) return;
    for (uint32_t at = 0; at < calls; at++) {
        const nd_layer *l = &c->layers[c->layer_of[at]];
        body[at].own = l->held & ~(1u << l->item->info.output);
    }
}

/* Owed bytes go to their place where somebody will read them. */
static bool settle(maker *m, uint32_t lent, const nd_item *before) {
    const nd_lent l = m->held.lent[lent];
    nd_held_drop(&m->held, lent);
    const uint32_t height = nd_output(l.item)->height;
    if (!nd_read_later(before, l.owed, &m->effort)) return true;
    return nd_write_back(&m->out, l.item, (nd_shadow){(uint32_t)l.place.first, height},
                         (nd_span){0, height}, l.owed);
}

static bool needs(const nd_lent *l, const nd_item *i, bool lending) {
    if (i->at.opcode == NEUTRON_OPCODE_CALL) return nd_held_needed(l, i, lending);
    if (i->at.opcode != NEUTRON_OPCODE_DMA) return false;
    NeutronDmaRecord d;
    nd_body(&i->at, &d, sizeof d);
    return nd_copies(d.source_region, d.source_offset, d.bytes, l->owed) ||
           nd_copies(d.target_region, d.target_offset, d.bytes, l->owed);
}

/* Before instructions [from, from + count), which need what they touch in its place; those that
 * read lent outputs where they are held do not, if `lending`. */
static bool settle_for(maker *m, const nd_item *from, uint32_t count, bool lending) {
    for (uint32_t lent = m->held.lent_count; lent-- > 0;) {
        bool needed = false;
        for (const nd_item *i = from; i < from + count && !needed; i++)
            needed = needs(&m->held.lent[lent], i, lending);
        if (needed && !settle(m, lent, from)) return false;
    }
    return true;
}

static void remember_written(maker *m, const nd_item *from, uint32_t count) {
    for (const nd_item *i = from; i < from + count; i++)
        if (i->at.opcode == NEUTRON_OPCODE_CALL) nd_held_written(&m->held, i);
}

/* Cycles of one call for `rows` rows; false where it has no price. */
static bool price(maker *m, const nd_item *i, int64_t rows, uint64_t *cycles) {
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
static bool price_loop(maker *m, const nd_cascade *c, uint64_t *cycles) {
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
static bool make_layer(maker *m, const nd_cascade *c, uint32_t at, uint32_t call, uint32_t from,
                       uint32_t to) {
    const nd_layer *l = &c->layers[at];
    const uint32_t calls = l->apart ? (to - from) * l->calls : 1;
    for (uint32_t i = 0; i < calls; i++) {
        const nd_span rows =
            l->apart ? nd_call_rows(c->body + l->ordinal[i % l->calls], from + i / l->calls)
                     : nd_layer_rows(l, from, to);
        if (!nd_empty(rows) && !nd_write_act(&m->out, ND_MAKE, call, rows, 0)) return false;
    }
    return true;
}

/* The calls of a planned loop, group by group. */
static bool make_groups(maker *m, const nd_cascade *c, uint64_t cycles) {
    uint32_t calls[ND_LAYERS];
    const uint32_t first = m->out.acts;
    for (uint32_t at = 0; at < c->count; at++)
        calls[at] =
            nd_write_call(&m->out, c->layers[at].item, c->layers[at].held, c->layers[at].shadows);
    for (uint32_t from = 0; from < c->iterations; from += c->together)
        for (uint32_t at = 0; at < c->count; at++)
            if (!make_layer(m, c, at, calls[at], from,
                            (uint32_t)nd_smaller(from + c->together, c->iterations)))
                return false;
    if (m->out.acts > first) m->out.act[first].cycles = cycles;
    return true;
}

/* Rings that share bytes are not told apart after the loop: nobody may read them then. */
static bool rings_end(maker *m, const nd_cascade *c, const nd_item *next) {
    for (const nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        if (!l->shares) continue;
        if (nd_output(l->item)->region != NEUTRON_REGION_SCRATCH ||
            nd_read_later(next, nd_all_bytes(l->item, l->item->info.output), &m->effort))
            return false;
    }
    return true;
}

/* What a ring would hold after the loop. */
static nd_span ring_left(const nd_layer *l, uint32_t iterations) {
    const int64_t ring = nd_output(l->item)->ring;
    nd_span rows = nd_layer_rows(l, 0, iterations);
    if (rows.end - rows.first > ring) {
        if (l->step > 0) rows.first = rows.end - ring;
        else rows.end = rows.first + ring;
    }
    return rows;
}

/* Rows that a loop holds: those of rings go back where somebody reads them, whole outputs are lent.
 */
static bool leave_loop(maker *m, const nd_cascade *c, const nd_item *next) {
    for (const nd_layer *l = c->layers; l < c->layers + c->count; l++) {
        const uint32_t output = l->item->info.output;
        const nk_operand *out = nd_output(l->item);
        const nd_span bytes = nd_all_bytes(l->item, output);
        const nd_span rows =
            l->ring ? ring_left(l, c->iterations) : nd_layer_rows(l, 0, c->iterations);
        if ((!l->ring && !l->lent) || l->shares || nd_empty(rows)) continue;
        const bool scratch = out->region == NEUTRON_REGION_SCRATCH;
        if (l->lent && scratch && rows.first == 0 && rows.end == out->height &&
            m->held.lent_count < ND_MOST_LENT) {
            nd_held_lend(&m->held, l->item, l->shadows[output].at);
            continue;
        }
        if ((!scratch || nd_read_later(next, bytes, &m->effort)) &&
            !nd_write_back(&m->out, l->item, l->shadows[output], rows, bytes))
            return false;
    }
    return true;
}

/* Plan a loop with what is lent, else without. */
static bool plan(maker *m, const nd_item *body, uint32_t calls) {
    nd_cascade *c = &m->cascade;
    const uint32_t iterations = body->iterations;
    if (nd_plan_cascade(c, &m->held, &m->effort, body, calls, iterations)) return true;
    nd_held_clear(&m->held);
    if (!settle_for(m, body, calls, false)) return false;
    if (nd_plan_cascade(c, &m->held, &m->effort, body, calls, iterations)) return true;
    nd_held_clear(&m->held);
    return false;
}

/* Give back the room of lent outputs that nobody reads any more. */
static void drop_unread(maker *m, const nd_item *before) {
    for (uint32_t lent = m->held.lent_count; lent-- > 0;)
        if (!nd_read_later(before, m->held.lent[lent].owed, &m->effort))
            nd_held_drop(&m->held, lent);
}

/* A loop with `calls` instructions behind it; what is made of a plan that fails is forgotten. */
static bool add_loop(maker *m, const nd_item *loop, uint32_t calls) {
    const nd_item *body = loop + 1;
    uint64_t cycles = 0;
    drop_unread(m, loop);
    if (!settle_for(m, body, calls, true)) return false;
    if (plan(m, body, calls) && rings_end(m, &m->cascade, body + calls) &&
        price_loop(m, &m->cascade, &cycles)) {
        const nd_writer before = m->out;
        if (make_groups(m, &m->cascade, cycles)) {
            nd_held_keep(&m->held);
            remember_written(m, body, calls);
            return leave_loop(m, &m->cascade, body + calls);
        }
        m->out = before;
    }
    if (!settle_for(m, body, calls, false)) return false;
    remember_written(m, body, calls);
    return nd_write_act(&m->out, ND_AS_IS, loop->at.offset, (nd_span){0, 0}, 0);
}

/* A call outside of loops. */
static bool add_call(maker *m, const nd_item *i) {
    const nd_span rows = nd_call_rows(i, 0);
    nd_shadow shadows[NEUTRON_MAX_OPERANDS];
    uint32_t held = 0;
    uint64_t cycles = 0;
    if (nd_empty(rows)) return true;
    if (!settle_for(m, i, 1, i->by_rows && !nd_over_itself(i, rows, 0))) return false;
    for (uint32_t x = 0; x < i->call.operand_count; x++) {
        const nd_lent *l = i->by_rows ? nd_held_find(&m->held, i, x) : NULL;
        if (l == NULL) continue;
        held |= 1u << x;
        shadows[x] = (nd_shadow){(uint32_t)l->place.first, nd_output(l->item)->height};
    }
    const bool good =
        price(m, i, rows.end - rows.first, &cycles) &&
        nd_write_act(&m->out, ND_MAKE, nd_write_call(&m->out, i, held, shadows), rows, cycles);
    remember_written(m, i, 1);
    return good;
}

static bool add(maker *m, const nd_item *i, uint32_t length) {
    nd_held_clear(&m->held);
    if (i->at.opcode == NEUTRON_OPCODE_LOOP) return add_loop(m, i, length);
    if (i->at.opcode == NEUTRON_OPCODE_CALL) return add_call(m, i);
    return settle_for(m, i, 1, false) &&
           nd_write_act(&m->out, ND_AS_IS, i->at.offset, (nd_span){0, 0}, 0);
}

/* All instructions up to the last. */
static bool add_all(maker *m) {
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
    for (uint32_t count = 1; count <= MOST_ITEMS; count++) {
        const nd_instruction at = nd_instruction_at(program, offset, room);
        if (at.opcode == NEUTRON_OPCODE_END) return count;
        offset += at.bytes;
    }
    return 0;
}

/* Read all instructions; loops know what they read of their own rings. */
static void read_items(maker *m, uint32_t count) {
    uint32_t offset = m->program->header.code_offset;
    for (uint32_t at = 0; at < count; offset += m->items[at++].at.bytes)
        nd_read_item(m->program, offset, &m->items[at]);
    for (nd_item *i = m->items; i < m->items + count; i++) {
        if (i->at.opcode != NEUTRON_OPCODE_LOOP) continue;
        NeutronLoopRecord loop;
        nd_body(&i->at, &loop, sizeof loop);
        const uint32_t length = nd_loop_length(i);
        for (uint32_t at = 1; at <= length; at++) i[at].iterations = loop.iterations;
        mark_rings(m, i + 1, length);
    }
}

static nd_script *make_in(const nd_program *program, uint32_t room) {
    const uint32_t count = count_items(program);
    maker *m = count ? neutronMemAlloc(NEUTRON_ALIGNMENT, sizeof *m) : NULL;
    nd_script *made = NULL;
    if (m == NULL) return NULL;
    memset(m, 0, sizeof *m);
    m->program = program;
    m->section = nd_no_section(program);
    m->effort.left = most_comparisons;
    m->held.room = room;
    m->items = neutronMemAlloc(NEUTRON_ALIGNMENT, count * sizeof *m->items);
    if (m->items != NULL && nd_writer_begin(&m->out, count)) {
        read_items(m, count);
        if (add_all(m))
            made = nd_writer_script(&m->out, m->items[count - 1].at.offset,
                                    m->held.most > ND_HELD_BYTES ? m->held.most : 0);
    }
    nd_writer_end(&m->out);
    neutronMemFree(m->items);
    neutronMemFree(m);
    return made;
}

nd_script *nd_script_make(const nd_program *program, bool shared) {
    nd_script *made = make_in(program, shared ? ND_SHARED_HELD_BYTES : ND_HELD_BYTES);
    /* More rows at a time than a cache holds cost one thread more than calls that are longer save.
     */
    if (made != NULL && made->memory != NULL) made->alone = make_in(program, ND_HELD_BYTES);
    return made;
}

void nd_script_free(nd_script *script) {
    if (script != NULL) neutronMemFree(script->alone);
    neutronMemFree(script);
}

uint8_t *nd_held_memory(const nd_script *script) {
    static _Thread_local uint8_t memory[ND_HELD_BYTES] __attribute__((aligned(64)));
    return script->memory ? script->memory : memory;
}

#endif
