#include "cascade.h"

#if ND_THREADS

#include <string.h>

#include "footprint.h"
#include "nk_window.h"

enum {
    MOST_LOOPS = 64,
    MOST_SHADOWS = 256,
    MOST_ITERATIONS = 512,
    MOST_TOGETHER = 64,
    STRIPES = 8 /* an output that is copied back takes less than such a part of the shadows' memory:
                   copying more costs what it saves */
};
/* Comparisons of two calls: some milliseconds, whatever the microcode. */
static const uint64_t most_comparisons = UINT64_C(1) << 19;

/* A call of the body at hand. */
typedef struct {
    uint32_t words[ND_MAX_WORDS];
    nd_instruction at;
    NeutronCallRecord record;
    nd_kernel_info info;
    nk_call call;
    uint32_t offset[NEUTRON_MAX_OPERANDS];
    uint32_t held; /* mask of operands that are rings of this loop */
    bool stripe, apart;
} step;

typedef struct {
    int64_t first, end;
} rows;

typedef struct {
    step steps[ND_CASCADE_CALLS];
    uint32_t count, iterations;
    uint64_t comparisons; /* left */
    nd_shadow shadows[MOST_SHADOWS];
    nd_cascade cascades[MOST_LOOPS];
    uint32_t loops, used; /* of those */
    uint32_t room, most;  /* bytes that shadows of one loop may take, and do */
} planner;

static bool empty(rows r) { return r.first >= r.end; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static rows joined(rows a, rows b) {
    if (empty(a)) return b;
    if (empty(b)) return a;
    return (rows){smaller(a.first, b.first), larger(a.end, b.end)};
}

static const nk_operand *output_of(const step *s) { return &s->call.operands[s->info.output]; }

/* Output rows of iterations [from, to), which follow each other. */
static rows written(const step *s, uint32_t from, uint32_t to) {
    rows all = {0, 0};
    for (uint32_t i = from; i < to; i++) {
        int32_t row0, row1;
        nd_clip_rows(&s->record, i, output_of(s)->height, &row0, &row1);
        all = joined(all, (rows){row0, row1});
    }
    return all;
}

/* Whether an input's rows follow from the output's; else all of them may be read. */
static bool by_rows(const step *s, uint32_t operand) {
    nk_window w;
    if (operand == s->info.output) return true;
    if (!(s->info.moved >> operand & 1)) return false;
    if (nd_element_wise(s->record.kernel))
        return s->call.operands[operand].height == output_of(s)->height;
    return operand == (uint32_t)s->info.input && nk_window_of(&s->call, &w);
}

/* Rows of an operand that a call for output rows `out`, which are not empty, touches. */
static rows touched(const step *s, uint32_t operand, rows out) {
    const int64_t height = s->call.operands[operand].height;
    nk_window w;
    if (!by_rows(s, operand)) return (rows){0, height};
    if (operand == s->info.output || !nk_window_of(&s->call, &w)) return out;
    const int64_t reach = (int64_t)(w.kernel_h - 1) * w.dilation_h;
    const int64_t first = out.first * w.stride_h - w.pad_top,
                  end = (out.end - 1) * w.stride_h - w.pad_top + reach + 1;
    return (rows){larger(first, 0), smaller(end, height)};
}

static uint64_t row_bytes(const nk_operand *o) {
    return (uint64_t)(o->width - 1) * o->pixel + (uint64_t)o->channels * nd_item_bytes(o->dtype);
}

/* Bytes of a region that rows of an operand lie in. Of constants, kernels may read more than what
 * their dimensions say. */
static rows bytes_of(const step *s, uint32_t operand, rows r) {
    const nk_operand *o = &s->call.operands[operand];
    if (empty(r)) return (rows){0, 0};
    if (!(s->info.moved >> operand & 1)) return (rows){s->offset[operand], INT64_MAX};
    const rows slots = o->ring == o->height ? r : (rows){0, o->ring};
    const int64_t from = s->offset[operand], pitch = o->pitch;
    return (rows){from + slots.first * pitch,
                  from + (slots.end - 1) * pitch + (int64_t)row_bytes(o)};
}

static bool same_region(const nk_operand *a, const nk_operand *b) {
    return a->present && b->present && a->region == b->region && a->index == b->index;
}

static bool overlap(rows a, rows b) { return a.first < b.end && b.first < a.end; }

static bool whole_overlap(const step *a, uint32_t x, const step *b, uint32_t y) {
    const nk_operand *p = &a->call.operands[x], *q = &b->call.operands[y];
    return same_region(p, q) &&
           overlap(bytes_of(a, x, (rows){0, p->height}), bytes_of(b, y, (rows){0, q->height}));
}

static bool same_elements(const step *a, uint32_t x, const step *b, uint32_t y) {
    const nk_operand *p = &a->call.operands[x], *q = &b->call.operands[y];
    return same_region(p, q) && a->offset[x] == b->offset[y] && p->dtype == q->dtype &&
           p->pitch == q->pitch && p->pixel == q->pixel && p->ring == q->ring &&
           p->height == q->height && p->width == q->width && p->channels == q->channels;
}

/* Rows in memory of their own, without gaps that somebody else's bytes could be in. */
static bool may_move(const nk_operand *o) {
    return o->pixel == (uint64_t)o->channels * nd_item_bytes(o->dtype) && o->pitch >= row_bytes(o);
}

/* The calls of a body, if all are of kernels that are understood here: one output, one image, rows
 * that follow each other from iteration to iteration. */
static bool read_body(planner *p, const nd_program *program, uint32_t offset, uint32_t words) {
    for (p->count = 0; words > 0; p->count++) {
        if (p->count == ND_CASCADE_CALLS) return false;
        step *s = &p->steps[p->count];
        const nd_instruction at = s->at = nd_instruction_at(program, offset, s->words);
        if (at.opcode != NEUTRON_OPCODE_CALL || at.words == 0 || at.words > words) return false;
        nd_decode_call(program, NULL, &at, &s->call, &s->record);
        if (!nd_kernel(s->record.kernel, &s->info) || s->info.dense) return false;
        nk_window w;
        if (!nd_element_wise(s->record.kernel) && !nk_window_of(&s->call, &w)) return false;
        const int64_t advance = s->record.row_step;
        if (s->info.written != 1u << s->info.output || advance == 0 ||
            (advance < 0 ? -advance : advance) != (int64_t)s->record.rows)
            return false;
        for (uint32_t operand = 0; operand < at.operands; operand++) {
            const nk_operand *o = &s->call.operands[operand];
            s->offset[operand] = nd_operand_record(&at, operand).offset;
            if (o->present && o->batch != 1) return false;
        }
        s->held = 0;
        s->stripe = s->apart = false;
        offset += at.bytes;
        words -= at.words;
    }
    return true;
}

/* Count `work` comparisons; false when no more are allowed. */
static bool pay(planner *p, uint64_t work) {
    const bool enough = p->comparisons >= work;
    p->comparisons = enough ? p->comparisons - work : 0;
    return enough;
}

/* Whether what a ring holds is always read as rows that this loop wrote: then where they are held
 * makes no difference. `producer` writes it, first of all in each iteration. */
static bool ring_is_read_as_written(const planner *p, const step *producer) {
    const bool down = producer->record.row_step < 0;
    const uint32_t output = producer->info.output;
    const int64_t ring = output_of(producer)->ring;
    rows all = {0, 0};
    for (uint32_t i = 0; i < p->iterations; i++) {
        const rows fresh = written(producer, i, i + 1);
        if (!empty(fresh)) {
            if (fresh.end - fresh.first > ring) return false;
            if (!empty(all) && (down ? fresh.end != all.first : fresh.first != all.end))
                return false;
            all = joined(all, fresh);
        }
        const rows live = down ? (rows){all.first, smaller(all.end, all.first + ring)}
                               : (rows){larger(all.first, all.end - ring), all.end};
        for (const step *s = producer + 1; s < p->steps + p->count; s++) {
            const rows out = written(s, i, i + 1);
            for (uint32_t operand = 0; operand < s->call.operand_count && !empty(out); operand++) {
                if (!same_elements(s, operand, producer, output)) continue;
                const rows in = touched(s, operand, out);
                if (!empty(in) && (empty(live) || in.first < live.first || in.end > live.end))
                    return false;
            }
        }
    }
    return true;
}

/* Mark the rings that calls of this loop write, and who reads them; false where one cannot be held
 * elsewhere. */
static bool find_rings(planner *p) {
    for (uint32_t j = 0; j < p->count; j++) {
        step *producer = &p->steps[j];
        const uint32_t output = producer->info.output;
        const nk_operand *ring = output_of(producer);
        if (ring->ring == ring->height) continue;
        if (!may_move(ring)) return false;
        for (uint32_t c = 0; c < p->count; c++) {
            step *s = &p->steps[c];
            for (uint32_t operand = 0; operand < s->call.operand_count; operand++) {
                if ((c == j && operand == output) || !whole_overlap(s, operand, producer, output))
                    continue;
                if (c <= j || operand == s->info.output || !by_rows(s, operand) ||
                    !same_elements(s, operand, producer, output))
                    return false;
                s->held |= 1u << operand;
            }
        }
        producer->held |= 1u << output;
        if (!pay(p, (uint64_t)p->iterations * p->count) || !ring_is_read_as_written(p, producer))
            return false;
    }
    return true;
}

/* Whether call `a` for output rows `ra` and `b` for `rb` touch the same bytes, one writing; with
 * `reads`, only bytes that `b` writes and `a` reads count. */
static bool conflict(const step *a, rows ra, const step *b, rows rb, bool reads) {
    for (uint32_t x = 0; x < a->call.operand_count; x++) {
        if (a->held >> x & 1 || (reads && x == a->info.output)) continue;
        for (uint32_t y = 0; y < b->call.operand_count; y++) {
            if (b->held >> y & 1 || (reads && y != b->info.output)) continue;
            if (x != a->info.output && y != b->info.output) continue;
            if (same_region(&a->call.operands[x], &b->call.operands[y]) &&
                overlap(bytes_of(a, x, touched(a, x, ra)), bytes_of(b, y, touched(b, y, rb))))
                return true;
        }
    }
    return false;
}

/* Running iterations [from, to) together moves the calls of a step before those that later steps
 * made in earlier iterations. */
static bool may_move_up(planner *p, uint32_t from, uint32_t to) {
    for (uint32_t a = 0; a < p->count; a++) {
        for (uint32_t late = from + 1; late < to; late++) {
            const rows ra = written(&p->steps[a], late, late + 1);
            if (empty(ra)) continue;
            for (uint32_t b = a; b < p->count; b++) {
                for (uint32_t early = from; early < late; early++) {
                    const rows rb = written(&p->steps[b], early, early + 1);
                    if (!pay(p, 1)) return false;
                    if (!empty(rb) && conflict(&p->steps[a], ra, &p->steps[b], rb, a == b))
                        return false;
                }
            }
        }
    }
    return true;
}

/* Whether output and inputs of one call for rows `out` share bytes, which loops must not meet
 * unless they are the same elements. */
static bool over_itself(const step *s, rows out) {
    const uint32_t output = s->info.output;
    const rows to = bytes_of(s, output, out);
    for (uint32_t x = 0; x < s->call.operand_count; x++) {
        if (x == output || s->held >> x & 1 || s->held >> output & 1) continue;
        if (nd_element_wise(s->record.kernel) && same_elements(s, x, s, output)) continue;
        if (same_region(&s->call.operands[x], output_of(s)) &&
            overlap(bytes_of(s, x, touched(s, x, out)), to))
            return true;
    }
    return false;
}

/* Rows that a ring has to hold while groups of `together` iterations run. */
static int64_t ring_rows(const planner *p, const step *producer, uint32_t together) {
    const bool down = producer->record.row_step < 0;
    const nk_operand *ring = output_of(producer);
    int64_t most = ring->ring;
    rows all = {0, 0};
    for (uint32_t from = 0; from < p->iterations; from += together) {
        const uint32_t to = (uint32_t)smaller(from + together, p->iterations);
        const rows fresh = written(producer, from, to);
        all = joined(all, fresh);
        most = larger(most, fresh.end - fresh.first);
        for (const step *s = producer + 1; s < p->steps + p->count; s++) {
            const rows out = written(s, from, to);
            for (uint32_t x = 0; x < s->call.operand_count && !empty(out); x++) {
                if (!same_elements(s, x, producer, producer->info.output)) continue;
                const rows in = touched(s, x, out);
                if (!empty(in)) most = larger(most, down ? in.end - all.first : all.end - in.first);
            }
        }
    }
    return smaller(most, ring->height);
}

static bool add_shadow(planner *p, nd_cascade *c, uint32_t call, uint32_t operand,
                       nd_shadow_kind kind, uint32_t ring, uint32_t at) {
    if (c->count == ND_CASCADE_SHADOWS || p->used + c->count == MOST_SHADOWS) return false;
    p->shadows[p->used + c->count++] =
        (nd_shadow){(uint8_t)call, (uint8_t)operand, (uint8_t)kind, ring, at};
    return true;
}

/* Room for `ring` rows; false when there is none. */
static bool take_room(planner *p, uint32_t *used, const nk_operand *o, int64_t ring, uint32_t *at) {
    const uint64_t bytes = ((uint64_t)ring * o->pitch + 63) / 64 * 64;
    if (bytes > p->room - *used) return false;
    *at = *used;
    *used += (uint32_t)bytes;
    p->most = *used > p->most ? *used : p->most;
    return true;
}

/* How calls that write over their own input run, in groups of `together` iterations. */
static void find_stripes(planner *p, uint32_t together) {
    for (uint32_t j = 0; j < p->count; j++) {
        step *s = &p->steps[j];
        const nk_operand *out = output_of(s);
        s->stripe = s->apart = false;
        for (uint32_t from = 0; from < p->iterations && !s->stripe; from += together) {
            const uint32_t to = (uint32_t)smaller(from + together, p->iterations);
            s->stripe = over_itself(s, written(s, from, to));
        }
        if (s->stripe && (!may_move(out) || (uint64_t)out->height * out->pitch > p->room / STRIPES))
            s->stripe = false, s->apart = true;
    }
}

/* Shadows of all calls; false when they do not fit, or nothing would run together. */
static bool place_shadows(planner *p, nd_cascade *c) {
    uint32_t used = 0, at = 0;
    bool useful = false;
    c->count = 0;
    find_stripes(p, c->together);
    for (uint32_t j = 0; j < p->count; j++) {
        const step *s = &p->steps[j];
        const nk_operand *out = output_of(s);
        const uint32_t output = s->info.output;
        useful |= !s->apart;
        if (s->apart && !add_shadow(p, c, j, output, ND_APART, 0, 0)) return false;
        if (s->stripe) {
            const int64_t ring =
                smaller((int64_t)c->together * s->record.rows, (int64_t)out->height);
            if (!take_room(p, &used, out, ring, &at) ||
                !add_shadow(p, c, j, output, ND_STRIPE, (uint32_t)ring, at))
                return false;
        }
        if (!(s->held >> output & 1)) continue;
        if (!pay(p, (uint64_t)p->iterations * p->count)) return false;
        const int64_t ring = ring_rows(p, s, c->together);
        if (!take_room(p, &used, out, ring, &at) ||
            !add_shadow(p, c, j, output, ND_RING_WRITTEN, (uint32_t)ring, at))
            return false;
        for (uint32_t b = j + 1; b < p->count; b++)
            for (uint32_t x = 0; x < p->steps[b].call.operand_count; x++)
                if (same_elements(&p->steps[b], x, s, output) &&
                    !add_shadow(p, c, b, x, ND_RING_READ, (uint32_t)ring, at))
                    return false;
    }
    return useful;
}

/* Calls that write over their own input as they are: what they leave depends on the order inside
 * them. */
static bool any_over_itself(const planner *p) {
    for (uint32_t j = 0; j < p->count; j++)
        for (uint32_t i = 0; i < p->iterations; i++)
            if (over_itself(&p->steps[j], written(&p->steps[j], i, i + 1))) return true;
    return false;
}

/* As many iterations at a time as fit. */
static bool plan_loop(planner *p, nd_cascade *c) {
    if (!pay(p, (uint64_t)p->iterations * p->count) || any_over_itself(p)) return false;
    for (uint32_t groups = 1; groups < p->iterations; groups += (groups + 1) / 2) {
        const uint32_t together = (p->iterations + groups - 1) / groups;
        if (together < 2) return false;
        if (together > MOST_TOGETHER) continue;
        c->together = together;
        if (!place_shadows(p, c)) continue;
        bool fine = true;
        for (uint32_t from = 0; from < p->iterations && fine; from += together)
            fine = may_move_up(p, from, (uint32_t)smaller(from + together, p->iterations));
        if (fine) return true;
        if (p->comparisons == 0) return false;
    }
    return false;
}

/* Cycles of the loop's calls; false where one has no price. */
static bool price_loop(const planner *p, const nd_program *program, uint64_t *cycles) {
    nd_section section = nd_no_section(program);
    *cycles = 0;
    for (const step *s = p->steps; s < p->steps + p->count; s++) {
        uint32_t offset = 0;
        const uint64_t bytes = nd_loaded_weights(&s->at, &s->info, &s->call, &offset);
        const uint32_t stored = bytes ? nd_stored_bytes(program, &section, offset, bytes) : 0;
        int64_t priced = 0;
        nm_cost cost;
        for (uint32_t i = 0; i < p->iterations; i++) {
            const rows out = written(s, i, i + 1);
            if (empty(out)) continue;
            if (out.end - out.first != priced &&
                nm_encoded_call_cost(program->target, s->at.plain, s->at.words, 0,
                                     (int32_t)(out.end - out.first), stored, &cost) != NEUTRON_NONE)
                return false;
            priced = out.end - out.first;
            *cycles += nm_cycles(&cost);
        }
    }
    return true;
}

static void plan_code(planner *p, const nd_program *program) {
    uint32_t room[ND_MAX_WORDS];
    for (uint32_t offset = program->header.code_offset; p->loops < MOST_LOOPS;) {
        const nd_instruction at = nd_instruction_at(program, offset, room);
        if (at.bytes == 0 || at.opcode == NEUTRON_OPCODE_END) return;
        offset += at.bytes;
        if (at.opcode != NEUTRON_OPCODE_LOOP) continue;
        NeutronLoopRecord loop;
        nd_body(&at, &loop, sizeof loop);
        p->iterations = loop.iterations;
        nd_cascade c = {.body = offset, .first = p->used};
        if (loop.iterations < 2 || loop.iterations > MOST_ITERATIONS ||
            !read_body(p, program, offset, loop.body_words) || !find_rings(p) ||
            !plan_loop(p, &c) || !price_loop(p, program, &c.cycles))
            continue;
        c.calls = p->count;
        p->cascades[p->loops++] = c;
        p->used += c.count;
    }
}

nd_plan *nd_plan_make(const nd_program *program, uint32_t room) {
    planner *p = neutronMemAlloc(NEUTRON_ALIGNMENT, sizeof *p);
    if (p == NULL) return NULL;
    p->loops = p->used = p->most = 0;
    p->room = room;
    p->comparisons = most_comparisons;
    plan_code(p, program);
    const size_t loops = p->loops * sizeof p->cascades[0], shadows = p->used * sizeof p->shadows[0],
                 tables = (sizeof(nd_plan) + loops + shadows + 63) / 64 * 64,
                 own = p->most > ND_SHADOW_BYTES ? p->most : 0;
    nd_plan *plan = p->loops ? neutronMemAlloc(NEUTRON_ALIGNMENT, tables + own) : NULL;
    if (plan != NULL) {
        plan->loops = p->loops;
        plan->memory = own ? (uint8_t *)plan + tables : NULL;
        memcpy(plan->cascades, p->cascades, loops);
        memcpy(plan->cascades + p->loops, p->shadows, shadows);
        plan->shadows = (const nd_shadow *)(const void *)(plan->cascades + p->loops);
    }
    neutronMemFree(p);
    return plan;
}

void nd_plan_free(nd_plan *plan) { neutronMemFree(plan); }

const nd_cascade *nd_plan_find(const nd_plan *plan, uint32_t body) {
    for (uint32_t at = 0; plan != NULL && at < plan->loops; at++)
        if (plan->cascades[at].body == body) return &plan->cascades[at];
    return NULL;
}

uint8_t *nd_shadow_memory(const nd_plan *plan) {
    static _Thread_local uint8_t memory[ND_SHADOW_BYTES] __attribute__((aligned(64)));
    return plan->memory ? plan->memory : memory;
}

#endif
