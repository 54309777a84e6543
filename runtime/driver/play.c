#include "play.h"

#if ND_THREADS

#include <string.h>

/* Bytes of rows that threads copy together: as long as handing a part to one of them takes. */
static const uint64_t worth_copying = 8192;

/* Rows [row0, row1) of `back`, in parts. */
typedef struct {
    const nd_back *back;
    const uint8_t *from;
    uint8_t *to; /* the region */
    int32_t row0, row1;
    uint32_t parts;
} copy;

static void copy_part(void *argument, uint32_t part) {
    const copy *c = argument;
    const nd_back *b = c->back;
    const int64_t rows = c->row1 - c->row0;
    const int32_t first = c->row0 + (int32_t)(rows * part / c->parts),
                  end = c->row0 + (int32_t)(rows * (part + 1) / c->parts);
    const uint64_t bytes = (uint64_t)b->to.width * b->to.pixel;
    for (int32_t y = first; y < end; y++) {
        const uint8_t *row = c->from + (size_t)((uint32_t)y % b->ring) * b->to.pitch;
        const uint64_t at = b->to.offset + (uint64_t)((uint32_t)y % b->to.ring) * b->to.pitch;
        const uint64_t low = at < b->first ? b->first : at,
                       high = at + bytes < b->end ? at + bytes : b->end;
        if (low < high) memcpy(c->to + low, row + (low - at), high - low);
    }
}

/* Threads that share rows copy their own. */
static void bring_back(const nd_runner *r, const nd_script *s, uint8_t *held, const nd_act *act) {
    const nd_back *b = &s->back[act->which];
    copy c = {b,
              held + b->from,
              nd_region_base(r->program, &r->buffers, b->to.region, b->to.index),
              act->row0,
              act->row1,
              1};
    const uint64_t bytes = (uint64_t)(c.row1 - c.row0) * b->to.pitch;
    if (r->pool != NULL && bytes >= worth_copying) {
        c.parts = nd_pool_threads(r->pool);
        nd_pool_run(r->pool, copy_part, &c, c.parts);
    } else {
        copy_part(&c, 0);
    }
}

/* A call with the buffers of this run. */
static void bind(const nd_runner *r, const nd_script *s, uint8_t *held, const nd_ready *k,
                 nk_call *call) {
    const NeutronOperandRecord *o = s->operands + k->operands;
    for (uint32_t x = 0; x < k->operand_count; x++) {
        uint8_t *base = k->held >> x & 1
                            ? held
                            : nd_region_base(r->program, &r->buffers, o[x].region, o[x].index);
        call->operands[x] = nd_operand_of(&o[x], base);
    }
    call->params = s->params + k->params;
    call->place = r->program->microcode + k->offset;
    call->model = r->model->handle;
    call->operand_count = k->operand_count;
    call->param_count = k->param_count;
    call->kernel = k->kernel;
    call->units = r->program->identity.units;
    call->length = r->program->identity.length;
    call->rounding = k->rounding;
    call->why = NULL;
    call->context = NULL;
}

static NeutronError make(nd_runner *r, const nd_script *s, uint8_t *held, const nd_act *act) {
    const nd_ready *k = &s->ready[act->which];
    nk_call call;
    nd_kernel_info info;
    bind(r, s, held, k, &call);
    (void)nd_kernel(k->kernel, &info); /* it was there when the script was made */
    call.row0 = act->row0;
    call.row1 = act->row1;
    return nd_make_rows(r, k->offset, &info, &call, k->work);
}

NeutronError nd_play(nd_runner *r, const nd_script *script,
                     NeutronError (*as_is)(nd_runner *r, uint32_t offset)) {
    uint8_t *held = nd_held_memory(script);
    for (const nd_act *act = script->act; act < script->act + script->acts; act++) {
        NeutronError error = NEUTRON_NONE;
        r->model->timeline.array += act->cycles;
        switch (act->deed) {
        case ND_AS_IS: error = as_is(r, act->which); break;
        case ND_BRING_BACK: bring_back(r, script, held, act); break;
        default:
            error = nd_may_go_on(r, script->ready[act->which].offset);
            if (error == NEUTRON_NONE) error = make(r, script, held, act);
        }
        if (error != NEUTRON_NONE) return error;
    }
    return nd_may_go_on(r, script->end);
}

#endif
