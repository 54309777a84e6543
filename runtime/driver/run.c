#include <stddef.h>
#include <string.h>

#include "cascade.h"
#include "model.h"
#include "nk_simd.h"

/* Calls that stay decoded while a loop runs: a cascade's stripes are so short that decoding and
 * pricing each anew would cost a tenth of the time. Hosts keep the calls of any cascade seen;
 * elsewhere the stack counts. */
#if ND_THREADS
enum { KEPT = 32 };
#else
enum { KEPT = 1 };
#endif

/* An instruction, and of a call what is the same each time. */
typedef struct {
    nd_instruction at; /* no words: empty */
    uint32_t room[ND_MAX_WORDS];
    bool decoded;
    uint32_t priced; /* rows that `cost` is for; 0: none */
    NeutronCallRecord record;
    nd_kernel_info info;
    nm_cost cost;
    nk_call call;
} kept;

/* One run on its way through the code. */
typedef struct {
    struct NeutronModel *model;
    const nd_program *program;
    nd_buffers buffers;
    NeutronConfig config;
    nd_profile profile;
    uint64_t deadline; /* on neutronClockMilliseconds; 0: none */
    nd_pool *pool;     /* NULL: one thread does all */
    uint32_t degree;   /* of sharing */
    bool tried;        /* the time that it takes counts */
#if ND_THREADS
    nd_section section; /* whose size was asked for last */
#endif
    kept kept[KEPT];
} run;

/* The instruction at `offset`; in a loop's body, `ordinal` counts them. */
static kept *instruction_at(run *r, uint32_t ordinal, uint32_t offset) {
    kept *k = &r->kept[ordinal % KEPT];
    if (k->at.words == 0 || k->at.offset != offset) {
        k->at = nd_instruction_at(r->program, offset, k->room);
        k->decoded = false;
        k->priced = 0;
    }
    return k;
}

/* Operations between two looks at the clock, less than a second of plain loops on a host as on a
 * microcontroller. Smaller bites would load weights more often. */
#if ND_THREADS
static const uint64_t bite_work = UINT64_C(1) << 28;
/* Bytes of rows that threads copy together: as long as handing a part to one of them takes. */
static const uint64_t worth_copying = 8192;
/* Operations of a run, some 50 microseconds in the fastest loops: shorter ones would be over before
 * threads that sleep were awake, and their calls are too short to be shared. */
static const uint64_t worth_waking = UINT64_C(1) << 22;
#else
static const uint64_t bite_work = UINT64_C(1) << 24;
#endif

static NeutronError may_go_on(run *r, const nd_instruction *at) {
    if (nd_suspended()) return NEUTRON_ERROR_SUSPENDED;
    if (r->deadline == 0 || neutronClockMilliseconds() < r->deadline) return NEUTRON_NONE;
    nd_say(&r->model->detail, "byte %u: stopped before this instruction was done", at->offset);
    return NEUTRON_ERROR_TIMEOUT;
}

/* For kernels inside a long row; several threads may ask at once. */
static bool in_time(const void *watch) {
    return neutronClockMilliseconds() < ((const run *)watch)->deadline;
}

static int32_t run_kernel(run *r, const nd_kernel_info *info, nk_call *call) {
#if ND_THREADS
    if (r->pool != NULL) return nd_run_stripes(r->pool, r->degree, info, call);
#endif
    (void)r, (void)info;
    return neutronKernels[call->kernel](NK_RUN, call);
}

/* Compute the call's rows, from the top down; in bites when somebody waits for a time-out. */
static NeutronError run_rows(run *r, const nd_instruction *at, const nd_kernel_info *info,
                             nk_call *call) {
    const int32_t end = call->row1;
    int32_t step = end - call->row0;
    bool watched = false; /* one step may take long: the kernel itself looks at the clock */
    if (r->deadline) {
        const uint64_t work = nd_row_work(call, info) + 1, rows = bite_work / work + 1;
        if (rows < (uint64_t)step && !info->dense) step = (int32_t)rows;
        watched = work > bite_work || (info->dense && rows < (uint64_t)step);
    }
    call->go_on = watched ? in_time : NULL;
    call->watch = r;
    while (call->row0 < end) {
        call->row1 = end - call->row0 > step ? call->row0 + step : end;
        if (run_kernel(r, info, call) != 0) {
            nd_say(&r->model->detail, "byte %u: %s: %s", at->offset, info->name,
                   call->why ? call->why : "no reason given");
            return NEUTRON_ERROR_KERNEL_FAILED;
        }
        call->row0 = call->row1;
        const NeutronError error = call->row0 < end || watched ? may_go_on(r, at) : NEUTRON_NONE;
        if (error != NEUTRON_NONE) return error;
    }
    return NEUTRON_NONE;
}

static uint32_t stored_bytes(run *r, uint32_t offset, uint64_t bytes) {
#if ND_THREADS
    return nd_stored_bytes(r->program, &r->section, offset, bytes);
#else
    nd_section s; /* the stack counts: it is looked for from the first one on */
    s.number = 0;
    return nd_stored_bytes(r->program, &s, offset, bytes);
#endif
}

/* Bytes that the array loads a call's weights from; 0: they are plain there. */
static uint32_t stored_weights(run *r, const kept *k) {
    uint32_t offset = 0;
    const uint64_t bytes = nd_loaded_weights(&k->at, &k->info, &k->call, &offset);
    return bytes ? stored_bytes(r, offset, bytes) : 0;
}

/* The price of `rows` rows of a call. */
static NeutronError price(run *r, kept *k, uint32_t rows) {
    if (k->priced == rows) return NEUTRON_NONE;
    const NeutronError error = nm_encoded_call_cost(r->program->target, k->at.plain, k->at.words, 0,
                                                    (int32_t)rows, stored_weights(r, k), &k->cost);
    k->priced = error == NEUTRON_NONE ? rows : 0;
    return error;
}

/* Count the cycles of rows [row0, row1) of a call, and tell who watches. */
static NeutronError account(run *r, kept *k, int32_t row0, int32_t row1) {
    const nk_call *call = &k->call;
    NeutronEvent event = {.kernel = k->record.kernel,
                          .opcode = NEUTRON_OPCODE_CALL,
                          .tag = k->record.tag,
                          .firstRow = row0,
                          .rows = (uint32_t)(row1 - row0)};
    const NeutronError error = price(r, k, event.rows);
    if (error != NEUTRON_NONE) return error;
    nd_timeline_call(&r->model->timeline, &k->cost, &event.start, &event.end);
    event.compute = k->cost.compute;
    event.memory = k->cost.memory;
    event.overhead = k->cost.overhead;
    if (r->model->sink != NULL) {
        event.macs = nd_call_macs(call, &k->info, event.rows);
        event.bytes = nd_call_bytes(call, &k->info, event.rows);
    }
    nd_observe(r->model, &r->profile, &event);
    return NEUTRON_NONE;
}

static void decode(run *r, kept *k) {
    if (k->decoded) return;
    nd_decode_call(r->program, &r->buffers, &k->at, &k->call, &k->record);
    nd_kernel(k->record.kernel, &k->info);
    k->decoded = true;
}

/* Rows of a call in iterations [from, to) of its loop, where those of one follow those of the
 * other; false: none. */
static bool rows_of(const kept *k, uint32_t from, uint32_t to, int32_t *row0, int32_t *row1) {
    const NeutronCallRecord *call = &k->record;
    const int64_t height = k->call.operands[k->info.output].height, step = call->row_step;
    const int64_t a = call->first_row + from * step, b = call->first_row + (to - 1) * step;
    const int64_t first = a < b ? a : b, end = (a < b ? b : a) + call->rows;
    *row0 = first < 0 ? 0 : (int32_t)(first < height ? first : height);
    *row1 = end < *row0 ? *row0 : (int32_t)(end < height ? end : height);
    return *row0 != *row1;
}

/* A call whose weights do not fit the window, some output channels after the other. */
static NeutronError run_blocks(run *r, kept *k) {
    nd_blocks blocks;
    NeutronError error = NEUTRON_NONE;
    nd_begin_blocks(r->model, &k->at, &k->info, &k->call, &blocks);
    while (error == NEUTRON_NONE && nd_next_blocks(r->model, &k->info, &blocks, &k->call))
        error = run_rows(r, &k->at, &k->info, &k->call);
    k->decoded = false;
    decode(r, k);
    return error;
}

static NeutronError run_call(run *r, kept *k, uint32_t iteration) {
    int32_t row0, row1;
    decode(r, k);
    if (!rows_of(k, iteration, iteration + 1, &row0, &row1)) return NEUTRON_NONE;
    k->call.row0 = row0, k->call.row1 = row1;
    const bool whole = r->model->window == NULL || nd_place_constants(r->model, &k->at, &k->call);
    const NeutronError error = whole ? run_rows(r, &k->at, &k->info, &k->call) : run_blocks(r, k);
    return error == NEUTRON_NONE ? account(r, k, row0, row1) : error;
}

static void run_copy(run *r, const nd_instruction *at) {
    NeutronDmaRecord d;
    nd_body(at, &d, sizeof d);
    uint8_t *source =
        nd_region_base(r->program, &r->buffers, d.source_region, d.source_index) + d.source_offset;
    uint8_t *target =
        nd_region_base(r->program, &r->buffers, d.target_region, d.source_index) + d.target_offset;
    if (r->model->window != NULL && d.source_region == NEUTRON_REGION_WEIGHTS)
        nd_read_constants(r->model, d.source_offset, d.bytes, target);
    else r->config.copy(target, source, d.bytes, d.channel);

    const uint32_t stored =
        d.source_region == NEUTRON_REGION_WEIGHTS ? stored_bytes(r, d.source_offset, d.bytes) : 0;
    const nm_cost cost = nm_dma_cost(r->program->target, d.bytes, stored);
    NeutronEvent event = {.opcode = NEUTRON_OPCODE_DMA,
                          .tag = d.channel,
                          .compute = cost.compute,
                          .memory = cost.memory,
                          .overhead = cost.overhead,
                          .bytes = d.bytes};
    nd_timeline_copy(&r->model->timeline, r->program->target, d.channel, &cost, &event.start,
                     &event.end);
    nd_observe(r->model, &r->profile, &event);
}

static void run_wait(run *r, const nd_instruction *at) {
    NeutronWaitRecord wait;
    nd_body(at, &wait, sizeof wait);
    r->config.wait(wait.channel);
    nd_timeline_wait(&r->model->timeline, wait.channel);
}

static NeutronError run_instruction(run *r, kept *k, uint32_t iteration) {
    const NeutronError error = may_go_on(r, &k->at);
    if (error != NEUTRON_NONE) return error;
    switch (k->at.opcode) {
    case NEUTRON_OPCODE_CALL: return run_call(r, k, iteration);
    case NEUTRON_OPCODE_DMA: run_copy(r, &k->at); return NEUTRON_NONE;
    case NEUTRON_OPCODE_WAIT: run_wait(r, &k->at); return NEUTRON_NONE;
    default: return NEUTRON_NONE;
    }
}

/* Instructions of so many words from `*offset` on, which hold no loop; moves behind them. */
static NeutronError run_body(run *r, uint32_t *offset, uint32_t words, uint32_t iteration) {
    for (uint32_t ordinal = 0; words > 0; ordinal++) {
        kept *k = instruction_at(r, ordinal, *offset);
        const NeutronError error = run_instruction(r, k, iteration);
        if (error != NEUTRON_NONE) return error;
        *offset += k->at.bytes;
        words -= k->at.words;
    }
    return NEUTRON_NONE;
}

#if ND_THREADS
/* Rows [row0, row1) of an operand on their way from where a shadow holds them to where they belong.
 */
typedef struct {
    const nk_operand *from;
    uint8_t *base;
    NeutronOperandRecord to;
    int32_t row0, row1;
    uint32_t parts;
} rows_back;

static void copy_part(void *argument, uint32_t part) {
    const rows_back *b = argument;
    const int64_t rows = b->row1 - b->row0;
    const int32_t first = b->row0 + (int32_t)(rows * part / b->parts);
    int32_t end = b->row0 + (int32_t)(rows * (part + 1) / b->parts);
    size_t bytes = (size_t)b->to.width * b->to.pixel;
    if (first < end && bytes == b->to.pitch && b->to.ring == b->to.height &&
        b->from->ring == b->to.ring) {
        bytes *= (size_t)(end - first); /* rows without gaps are one */
        end = first + 1;
    }
    for (int32_t y = first; y < end; y++)
        memcpy(b->base + (size_t)((uint32_t)y % b->to.ring) * b->to.pitch, nk_row(b->from, 0, y),
               bytes);
}

/* Threads that share rows copy their own. */
static void copy_back(const run *r, const kept *k, const nd_shadow *s, int32_t row0, int32_t row1) {
    const NeutronOperandRecord to = nd_operand_record(&k->at, s->operand);
    rows_back b = {&k->call.operands[s->operand],
                   nd_region_base(r->program, &r->buffers, to.region, to.index) + (size_t)to.offset,
                   to,
                   row0,
                   row1,
                   1};
    const uint64_t bytes = (uint64_t)(row1 - row0) * to.pitch;
    if (r->pool != NULL && bytes >= worth_copying) {
        b.parts = nd_pool_threads(r->pool);
        nd_pool_run(r->pool, copy_part, &b, b.parts);
    } else {
        copy_part(&b, 0);
    }
}

/* What the ring would hold after the loop. */
static void copy_ring_back(const run *r, const kept *k, const nd_shadow *s, uint32_t iterations) {
    const int32_t ring = (int32_t)nd_operand_record(&k->at, s->operand).ring;
    int32_t row0, row1;
    if (!rows_of(k, 0, iterations, &row0, &row1)) return;
    if (row1 - row0 > ring) {
        if (k->record.row_step > 0) row0 = row1 - ring;
        else row1 = row0 + ring;
    }
    copy_back(r, k, s, row0, row1);
}

/* Point the operands of a loop's calls to where they are held. */
static void hold(run *r, const nd_cascade *c, const nd_shadow *shadows, uint32_t offset) {
    for (uint32_t at = 0; at < c->calls; at++) {
        kept *k = instruction_at(r, at, offset);
        k->decoded = false; /* whether it was held before or not */
        decode(r, k);
        offset += k->at.bytes;
    }
    for (const nd_shadow *s = shadows; s < shadows + c->count; s++) {
        nk_operand *o = &r->kept[s->call].call.operands[s->operand];
        if (s->kind == ND_APART) continue;
        o->data = nd_shadow_memory(r->model->plan) + s->at;
        o->ring = s->ring;
    }
}

/* A call for all rows of iterations [from, to), then back to its place what it wrote elsewhere. */
static NeutronError run_together(run *r, kept *k, const nd_shadow *own, uint32_t from,
                                 uint32_t to) {
    int32_t row0, row1;
    NeutronError error = may_go_on(r, &k->at);
    if (error != NEUTRON_NONE || !rows_of(k, from, to, &row0, &row1)) return error;
    k->call.row0 = row0, k->call.row1 = row1;
    error = run_rows(r, &k->at, &k->info, &k->call);
    if (error == NEUTRON_NONE && own && own->kind == ND_STRIPE) copy_back(r, k, own, row0, row1);
    return error;
}

/* How call `at` of a loop writes its output, where that is not in place for all iterations. */
static const nd_shadow *own_shadow(const nd_cascade *c, const nd_shadow *shadows, uint32_t at) {
    for (uint32_t i = 0; i < c->count; i++)
        if (shadows[i].call == at && shadows[i].kind >= ND_STRIPE) return &shadows[i];
    return NULL;
}

static NeutronError run_group(run *r, const nd_cascade *c, const nd_shadow *shadows, uint32_t from,
                              uint32_t to) {
    NeutronError error = NEUTRON_NONE;
    for (uint32_t at = 0; at < c->calls; at++) {
        kept *k = &r->kept[at];
        const nd_shadow *own = own_shadow(c, shadows, at);
        const uint32_t step = own && own->kind == ND_APART ? 1 : to - from;
        for (uint32_t i = from; i < to; i += step) {
            error = run_together(r, k, own, i, i + step);
            if (error != NEUTRON_NONE) return error;
        }
    }
    return NEUTRON_NONE;
}

/* Count the cycles of a loop's calls in their order, for those who watch each. */
static NeutronError account_each(run *r, const nd_cascade *c, uint32_t iterations) {
    for (uint32_t i = 0; i < iterations; i++) {
        for (uint32_t at = 0; at < c->calls; at++) {
            kept *k = &r->kept[at];
            int32_t row0, row1;
            if (!rows_of(k, i, i + 1, &row0, &row1)) continue;
            const NeutronError error = account(r, k, row0, row1);
            if (error != NEUTRON_NONE) return error;
        }
    }
    return NEUTRON_NONE;
}

/* A loop by its plan; moves behind it. */
static NeutronError run_cascade(run *r, const nd_cascade *c, uint32_t iterations, uint32_t *next) {
    const nd_shadow *shadows = r->model->plan->shadows + c->first;
    hold(r, c, shadows, *next);
    for (uint32_t from = 0; from < iterations; from += c->together) {
        const uint32_t left = iterations - from;
        const NeutronError error =
            run_group(r, c, shadows, from, from + (left < c->together ? left : c->together));
        if (error != NEUTRON_NONE) return error;
    }
    for (const nd_shadow *s = shadows; s < shadows + c->count; s++)
        if (s->kind == ND_RING_WRITTEN) copy_ring_back(r, &r->kept[s->call], s, iterations);
    for (uint32_t at = 0; at < c->calls; at++) *next += r->kept[at].at.bytes;
    if (r->profile.at != NULL || r->model->trace_lines) return account_each(r, c, iterations);
    r->model->timeline.array += c->cycles;
    return NEUTRON_NONE;
}

_Static_assert((uint32_t)ND_CASCADE_CALLS <= (uint32_t)KEPT, "a cascade's calls stay decoded");
#endif

static NeutronError run_loop(run *r, const nd_instruction *at, uint32_t *next) {
    NeutronLoopRecord loop;
    nd_body(at, &loop, sizeof loop);
    const uint32_t body = *next;
#if ND_THREADS
    /* Who watches sees memory after each call: then they run one by one. */
    const nd_cascade *c = r->model->sink ? NULL : nd_plan_find(r->model->plan, body);
    if (c != NULL) return run_cascade(r, c, loop.iterations, next);
#endif
    for (uint32_t iteration = 0; iteration < loop.iterations; iteration++) {
        *next = body;
        const NeutronError error = run_body(r, next, loop.body_words, iteration);
        if (error != NEUTRON_NONE) return error;
    }
    return NEUTRON_NONE;
}

static NeutronError run_code(run *r) {
    for (uint32_t offset = r->program->header.code_offset;;) {
        kept *k = instruction_at(r, 0, offset);
        const bool last = k->at.opcode == NEUTRON_OPCODE_END;
        offset += k->at.bytes;
        const NeutronError error = k->at.opcode == NEUTRON_OPCODE_LOOP
                                       ? run_loop(r, &k->at, &offset)
                                       : run_instruction(r, k, 0);
        if (error != NEUTRON_NONE || last) return error;
    }
}

#if ND_THREADS
/* Decide whether threads take part in a run, and wake them. */
static void share(run *r) {
    nd_pool *pool = r->model->pool;
    if (pool == NULL || r->program->work < worth_waking) return;
    r->degree = nd_trial_begin(nd_pool_trial(pool));
    r->tried = r->model->sink == NULL;
    if (r->degree == ND_SHARE_NOTHING) return;
    r->pool = pool;
    nd_pool_wake(pool);
}

/* The run is over: what it took counts, unless somebody looked on or it broke off. */
static void shared(const run *r, NeutronError error) {
    if (r->tried && error == NEUTRON_NONE) nd_trial_end(nd_pool_trial(r->model->pool));
}
#else
static void share(run *r) { (void)r; }
static void shared(const run *r, NeutronError error) { (void)r, (void)error; }
#endif

NeutronError nd_run(struct NeutronModel *model, const NeutronDataConfig *data) {
    run r;
    memset(&r, 0, offsetof(run, kept));
    for (uint32_t at = 0; at < KEPT; at++) r.kept[at].at.words = 0;
    nd_text_reset(&model->detail);
    nd_text_reset(&model->trace);
    NeutronError error = nd_check_buffers(model, data, &r.buffers);
    if (error != NEUTRON_NONE) return error;
    r.model = model;
    r.program = &model->program;
    r.config = nd_config();
    if (model->timeout_seconds) {
        r.deadline = neutronClockMilliseconds() + (uint64_t)model->timeout_seconds * 1000;
    }
    if (r.program->profile_bytes) {
        r.profile.at = data->outputs[r.program->outputs + 1];
        r.profile.left = r.program->profile_bytes;
        if (r.profile.at) memset(r.profile.at, 0, r.profile.left); /* a zero record ends the list */
    }
    share(&r);
    nd_clear_buffers(model, &r.buffers);
    nd_timeline_start(&model->timeline);
    NK_NEW_RUN();
    error = run_code(&r);
    shared(&r, error);
    model->cycles = nd_timeline_end(&model->timeline);
    model->traced = model->trace_lines;
    return error;
}
