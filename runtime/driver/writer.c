#include "writer.h"

#if ND_THREADS

#include <string.h>

/* More acts than instructions: groups of a loop's iterations. */
enum { MORE_ACTS = 8192, MOST_BACKS = 512, LINE = 64 };

/* The next `bytes` behind what `*at` counts. */
static void *part(uint8_t *base, size_t *at, size_t bytes) {
    void *found = base ? base + *at : NULL;
    *at += (bytes + 7) / 8 * 8;
    return found;
}

/* Where the tables lie from `base` on; the bytes that they take. */
static size_t place_tables(nd_writer *w, uint8_t *base, uint32_t instructions) {
    size_t at = 0;
    w->act = part(base, &at, w->most_acts * sizeof *w->act);
    w->ready = part(base, &at, instructions * sizeof *w->ready);
    w->operand = part(base, &at, (size_t)instructions * NEUTRON_MAX_OPERANDS * sizeof *w->operand);
    w->param = part(base, &at, (size_t)instructions * NEUTRON_MAX_PARAMS * sizeof *w->param);
    w->back = part(base, &at, MOST_BACKS * sizeof *w->back);
    return at;
}

bool nd_writer_begin(nd_writer *w, uint32_t instructions) {
    memset(w, 0, sizeof *w);
    w->most_acts = instructions + MORE_ACTS;
    w->memory = neutronMemAlloc(LINE, place_tables(w, NULL, instructions));
    if (w->memory == NULL) return false;
    (void)place_tables(w, w->memory, instructions);
    return true;
}

void nd_writer_end(nd_writer *w) { neutronMemFree(w->memory); }

bool nd_write_act(nd_writer *w, nd_deed deed, uint32_t which, nd_span rows, uint64_t cycles) {
    if (w->acts == w->most_acts) return false;
    w->act[w->acts++] =
        (nd_act){cycles, which, (int32_t)rows.first, (int32_t)rows.end, (uint8_t)deed};
    return true;
}

uint32_t nd_write_call(nd_writer *w, const nd_item *i, uint32_t held, const nd_shadow *shadows) {
    w->ready[w->readies] = (nd_ready){.work = nd_row_work(&i->call, &i->info),
                                      .offset = i->at.offset,
                                      .operands = w->operands,
                                      .params = w->params,
                                      .kernel = (uint16_t)i->call.kernel,
                                      .param_count = (uint16_t)i->call.param_count,
                                      .operand_count = (uint8_t)i->call.operand_count,
                                      .rounding = i->call.rounding,
                                      .held = (uint8_t)held};
    for (uint32_t x = 0; x < i->call.operand_count; x++) {
        NeutronOperandRecord *o = &w->operand[w->operands++];
        *o = nd_operand_record(&i->at, x);
        if (!(held >> x & 1)) continue;
        o->offset = shadows[x].at;
        o->ring = shadows[x].ring;
    }
    memcpy(w->param + w->params, i->call.params, i->call.param_count * sizeof *w->param);
    w->params += i->call.param_count;
    return w->readies++;
}

bool nd_write_back(nd_writer *w, const nd_item *item, nd_shadow held, nd_span rows, nd_span bytes) {
    if (w->backs == MOST_BACKS) return false;
    w->back[w->backs] =
        (nd_back){nd_operand_record(&item->at, item->info.output), held.at, held.ring,
                  (uint32_t)bytes.first, (uint32_t)nd_smaller(bytes.end, UINT32_MAX)};
    return nd_write_act(w, ND_BRING_BACK, w->backs++, rows, 0);
}

/* Copy the tables behind `s`, which is `base`; the bytes that all takes. */
static size_t copy_tables(const nd_writer *w, nd_script *s, size_t *held) {
    uint8_t *base = (uint8_t *)s;
    size_t at = 0;
    (void)part(base, &at, sizeof *s);
    nd_act *act = part(base, &at, w->acts * sizeof *act);
    nd_ready *ready = part(base, &at, w->readies * sizeof *ready);
    NeutronOperandRecord *operand = part(base, &at, w->operands * sizeof *operand);
    int32_t *param = part(base, &at, w->params * sizeof *param);
    nd_back *back = part(base, &at, w->backs * sizeof *back);
    *held = (at + LINE - 1) / LINE * LINE;
    if (s == NULL) return at;
    s->act = memcpy(act, w->act, w->acts * sizeof *act);
    s->ready = memcpy(ready, w->ready, w->readies * sizeof *ready);
    s->operands = memcpy(operand, w->operand, w->operands * sizeof *operand);
    s->params = memcpy(param, w->param, w->params * sizeof *param);
    s->back = memcpy(back, w->back, w->backs * sizeof *back);
    return at;
}

nd_script *nd_writer_script(const nd_writer *w, uint32_t end, uint32_t held) {
    size_t held_at = 0;
    const size_t bytes = copy_tables(w, NULL, &held_at);
    nd_script *s = neutronMemAlloc(LINE, held ? held_at + held : bytes);
    if (s == NULL) return NULL;
    (void)copy_tables(w, s, &held_at);
    s->acts = w->acts;
    s->end = end;
    s->memory = held ? (uint8_t *)s + held_at : NULL;
    s->alone = NULL;
    return s;
}

#endif
