#include "run_script.h"

#include "thread_pool.h"

#if ND_THREADS

#include <string.h>

/* Bytes from which on threads share a copy: handing a part to a thread takes as long as copying
 * them. */
static const uint64_t worth_copying = 8192;

/* Copies rows [row0, row1) of `back`, in parts. */
typedef struct {
    const nd_write_back *back;
    const uint8_t *from;
    uint8_t *to; /* the region */
    int32_t row0, row1;
    uint32_t parts;
} copy;

static void copy_part(void *argument, uint32_t part) {
    const copy *c = argument;
    const nd_write_back *b = c->back;
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

/* Copy cached rows to their region, on the thread pool where that is faster. */
static void write_back(const nd_run_context *r, const nd_script *s, uint8_t *cache,
                       const nd_step *step) {
    const nd_write_back *b = &s->write_backs[step->which];
    copy c = {b,
              cache + b->from,
              nd_region_base(r->program, &r->buffers, b->to.region, b->to.index),
              step->row0,
              step->row1,
              1};
    const uint64_t bytes = (uint64_t)(c.row1 - c.row0) * b->to.pitch;
    if (r->pool != NULL && bytes >= worth_copying) {
        c.parts = nd_pool_threads(r->pool);
        nd_pool_run(r->pool, copy_part, &c, c.parts);
    } else {
        copy_part(&c, 0);
    }
}

/* Bind a prepared call to the buffers of this run. */
static void bind(const nd_run_context *r, const nd_script *s, uint8_t *cache,
                 const nd_prepared_call *k, nk_call *call) {
    const NeutronOperandRecord *o = s->operands + k->operands;
    for (uint32_t x = 0; x < k->operand_count; x++) {
        uint8_t *base = k->cached >> x & 1
                            ? cache
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

static NeutronError run_call(nd_run_context *r, const nd_script *s, uint8_t *cache,
                             const nd_step *step) {
    const nd_prepared_call *k = &s->calls[step->which];
    nk_call call;
    nd_kernel_info info;
    bind(r, s, cache, k, &call);
    (void)nd_kernel(k->kernel, &info); /* found when the script was built */
    call.row0 = step->row0;
    call.row1 = step->row1;
    return nd_compute_rows(r, k->offset, &info, &call, k->work);
}

NeutronError nd_run_script(nd_run_context *r, const nd_script *script,
                           NeutronError (*run_microcode)(nd_run_context *r, uint32_t offset)) {
    uint8_t *cache = nd_cache_memory(script);
    for (const nd_step *step = script->steps; step < script->steps + script->step_count; step++) {
        NeutronError error = NEUTRON_NONE;
        r->model->timeline.array += step->cycles;
        switch (step->kind) {
        case ND_STEP_MICROCODE: error = run_microcode(r, step->which); break;
        case ND_STEP_WRITE_BACK: write_back(r, script, cache, step); break;
        default:
            error = nd_check_deadline(r, script->calls[step->which].offset);
            if (error == NEUTRON_NONE) error = run_call(r, script, cache, step);
        }
        if (error != NEUTRON_NONE) return error;
    }
    return nd_check_deadline(r, script->end);
}

#endif
