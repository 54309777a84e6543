#include "script_writer.h"

#if ND_THREADS

#include <string.h>

/* Limits: steps beyond one per instruction (groups of loop iterations), and write-backs. */
enum { EXTRA_STEPS = 8192, MAX_WRITE_BACKS = 512, LINE = 64 };

/* Return the next `bytes` bytes, aligned to 8, and advance `*at`. */
static void *part(uint8_t *base, size_t *at, size_t bytes) {
    void *found = base ? base + *at : NULL;
    *at += (bytes + 7) / 8 * 8;
    return found;
}

/* Place the tables from `base` on, and return their size in bytes. */
static size_t place_tables(nd_writer *w, uint8_t *base, uint32_t instructions) {
    size_t at = 0;
    w->steps = part(base, &at, w->max_steps * sizeof *w->steps);
    w->calls = part(base, &at, instructions * sizeof *w->calls);
    w->operands =
        part(base, &at, (size_t)instructions * NEUTRON_MAX_OPERANDS * sizeof *w->operands);
    w->params = part(base, &at, (size_t)instructions * NEUTRON_MAX_PARAMS * sizeof *w->params);
    w->write_backs = part(base, &at, MAX_WRITE_BACKS * sizeof *w->write_backs);
    return at;
}

bool nd_writer_begin(nd_writer *w, uint32_t instructions) {
    memset(w, 0, sizeof *w);
    w->max_steps = instructions + EXTRA_STEPS;
    w->memory = neutronMemAlloc(LINE, place_tables(w, NULL, instructions));
    if (w->memory == NULL) return false;
    (void)place_tables(w, w->memory, instructions);
    return true;
}

void nd_writer_end(nd_writer *w) { neutronMemFree(w->memory); }

bool nd_add_step(nd_writer *w, nd_step_kind deed, uint32_t which, nd_span rows, uint64_t cycles) {
    if (w->step_count == w->max_steps) return false;
    w->steps[w->step_count++] =
        (nd_step){cycles, which, (int32_t)rows.first, (int32_t)rows.end, (uint8_t)deed};
    return true;
}

uint32_t nd_add_call(nd_writer *w, const nd_item *i, uint32_t cached,
                     const nd_cache_place *places) {
    w->calls[w->call_count] = (nd_prepared_call){.work = nd_row_work(&i->call, &i->info),
                                                 .offset = i->at.offset,
                                                 .operands = w->operand_count,
                                                 .params = w->param_count,
                                                 .kernel = (uint16_t)i->call.kernel,
                                                 .param_count = (uint16_t)i->call.param_count,
                                                 .operand_count = (uint8_t)i->call.operand_count,
                                                 .rounding = i->call.rounding,
                                                 .cached = (uint8_t)cached};
    for (uint32_t x = 0; x < i->call.operand_count; x++) {
        NeutronOperandRecord *o = &w->operands[w->operand_count++];
        *o = nd_operand_record(&i->at, x);
        if (!(cached >> x & 1)) continue;
        o->offset = places[x].at;
        o->ring = places[x].ring;
    }
    memcpy(w->params + w->param_count, i->call.params, i->call.param_count * sizeof *w->params);
    w->param_count += i->call.param_count;
    return w->call_count++;
}

bool nd_add_write_back(nd_writer *w, const nd_item *item, nd_cache_place from, nd_span rows,
                       nd_span bytes) {
    if (w->write_back_count == MAX_WRITE_BACKS) return false;
    w->write_backs[w->write_back_count] =
        (nd_write_back){nd_operand_record(&item->at, item->info.output), from.at, from.ring,
                        (uint32_t)bytes.first, (uint32_t)nd_smaller(bytes.end, UINT32_MAX)};
    return nd_add_step(w, ND_STEP_WRITE_BACK, w->write_back_count++, rows, 0);
}

/* Copy the tables behind `s`, and return the size in bytes; with NULL only the size. */
static size_t copy_tables(const nd_writer *w, nd_script *s, size_t *cache_at) {
    uint8_t *base = (uint8_t *)s;
    size_t at = 0;
    (void)part(base, &at, sizeof *s);
    nd_step *act = part(base, &at, w->step_count * sizeof *act);
    nd_prepared_call *ready = part(base, &at, w->call_count * sizeof *ready);
    NeutronOperandRecord *operand = part(base, &at, w->operand_count * sizeof *operand);
    int32_t *param = part(base, &at, w->param_count * sizeof *param);
    nd_write_back *back = part(base, &at, w->write_back_count * sizeof *back);
    *cache_at = (at + LINE - 1) / LINE * LINE;
    if (s == NULL) return at;
    s->steps = memcpy(act, w->steps, w->step_count * sizeof *act);
    s->calls = memcpy(ready, w->calls, w->call_count * sizeof *ready);
    s->operands = memcpy(operand, w->operands, w->operand_count * sizeof *operand);
    s->params = memcpy(param, w->params, w->param_count * sizeof *param);
    s->write_backs = memcpy(back, w->write_backs, w->write_back_count * sizeof *back);
    return at;
}

nd_script *nd_writer_script(const nd_writer *w, uint32_t end, uint32_t cache_bytes) {
    size_t cache_at = 0;
    const size_t bytes = copy_tables(w, NULL, &cache_at);
    nd_script *s = neutronMemAlloc(LINE, cache_bytes ? cache_at + cache_bytes : bytes);
    if (s == NULL) return NULL;
    (void)copy_tables(w, s, &cache_at);
    s->step_count = w->step_count;
    s->end = end;
    s->cache = cache_bytes ? (uint8_t *)s + cache_at : NULL;
    s->single_threaded = NULL;
    return s;
}

#endif
