#include <stddef.h>
#include <string.h>

#include "run_context.h"

#if ND_THREADS
#include "run_script.h"
#include "thread_pool.h"
#endif

/* Size of the cache of decoded instructions. Decoding and pricing each call of a cascade again
 * would take a tenth of the time. On hosts it holds the calls of any cascade seen; on a
 * microcontroller stack space matters more. */
#if ND_THREADS
enum { CACHED_INSTRUCTIONS = 32 };
#else
enum { CACHED_INSTRUCTIONS = 1 };
#endif

/* A decoded instruction; of a call, also what does not change between iterations. */
typedef struct {
    nd_instruction at; /* no words: empty */
    uint32_t storage[ND_MAX_WORDS];
    bool decoded;
    uint32_t priced; /* rows that `cost` is for; 0: none */
    NeutronCallRecord record;
    nd_kernel_info info;
    nm_cost cost;
    nk_call call;
} slot;

/* One run of the microcode. */
typedef struct {
    nd_run_context on; /* first, so that nd_run_script's pointer to it points to the run */
    NeutronConfig config;
    nd_profile profile;
    bool timed;       /* its time is recorded for thread tuning */
    bool slots_valid; /* `slots` is initialised */
#if ND_THREADS
    nd_section section; /* the section of the last lookup */
#endif
    slot slots[CACHED_INSTRUCTIONS];
} run;

/* The instruction at `offset`; in a loop's body, `ordinal` counts them. */
static slot *instruction_at(run *r, uint32_t ordinal, uint32_t offset) {
    slot *k = &r->slots[ordinal % CACHED_INSTRUCTIONS];
    for (uint32_t at = 0; at < CACHED_INSTRUCTIONS && !r->slots_valid; at++)
        r->slots[at].at.words = 0;
    r->slots_valid = true;
    if (k->at.words == 0 || k->at.offset != offset) {
        k->at = nd_instruction_at(r->on.program, offset, k->storage);
        k->decoded = false;
        k->priced = 0;
    }
    return k;
}

#if ND_THREADS
/* Least operations of a run that wakes threads, some 50 microseconds in the fastest loops: shorter
 * runs would end before sleeping threads are awake. */
static const uint64_t worth_waking = UINT64_C(1) << 22;
#endif

static NeutronError run_rows(run *r, slot *k) {
    const uint64_t work = r->on.deadline ? nd_row_work(&k->call, &k->info) : 0;
    return nd_compute_rows(&r->on, k->at.offset, &k->info, &k->call, work);
}

static uint32_t stored_bytes(run *r, uint32_t offset, uint64_t bytes) {
#if ND_THREADS
    return nd_stored_bytes(r->on.program, &r->section, offset, bytes);
#else
    nd_section s; /* searched from the first section on, to save stack */
    s.number = 0;
    return nd_stored_bytes(r->on.program, &s, offset, bytes);
#endif
}

/* Stored bytes of a call's weights; 0 where they are not coded. */
static uint32_t stored_weights(run *r, const slot *k) {
    uint32_t offset = 0;
    const uint64_t bytes = nd_loaded_weights(&k->at, &k->info, &k->call, &offset);
    return bytes ? stored_bytes(r, offset, bytes) : 0;
}

/* Compute the cost of `rows` rows of a call. */
static NeutronError price(run *r, slot *k, uint32_t rows) {
    if (k->priced == rows) return NEUTRON_NONE;
    const NeutronError error =
        nm_encoded_call_cost(r->on.program->target, k->at.plain, k->at.words, 0, (int32_t)rows,
                             stored_weights(r, k), &k->cost);
    k->priced = error == NEUTRON_NONE ? rows : 0;
    return error;
}

/* Advance the timeline by rows [row0, row1) of a call, and report the event. */
static NeutronError account(run *r, slot *k, int32_t row0, int32_t row1) {
    const nk_call *call = &k->call;
    NeutronEvent event = {.kernel = k->record.kernel,
                          .opcode = NEUTRON_OPCODE_CALL,
                          .tag = k->record.tag,
                          .firstRow = row0,
                          .rows = (uint32_t)(row1 - row0)};
    if (ND_CYCLES) {
        const NeutronError error = price(r, k, event.rows);
        if (error != NEUTRON_NONE) return error;
        nd_timeline_call(&r->on.model->timeline, &k->cost, &event.start, &event.end);
        event.compute = k->cost.compute;
        event.memory = k->cost.memory;
        event.overhead = k->cost.overhead;
    }
    if (r->on.model->sink != NULL) {
        event.macs = nd_call_macs(call, &k->info, event.rows);
        event.bytes = nd_call_bytes(call, &k->info, event.rows);
    }
    nd_observe(r->on.model, &r->profile, &event);
    return NEUTRON_NONE;
}

static void decode(run *r, slot *k) {
    if (k->decoded) return;
    nd_decode_call(r->on.program, &r->on.buffers, &k->at, &k->call, &k->record);
    k->call.model = r->on.model->handle;
    nd_kernel(k->record.kernel, &k->info);
    k->decoded = true;
}

/* Clipped output rows of a call in iterations [from, to) of its loop; false where there are none.
 */
static bool rows_of(const slot *k, uint32_t from, uint32_t to, int32_t *row0, int32_t *row1) {
    const NeutronCallRecord *call = &k->record;
    const int64_t height = k->call.operands[k->info.output].height, step = call->row_step;
    const int64_t a = call->first_row + from * step, b = call->first_row + (to - 1) * step;
    const int64_t first = a < b ? a : b, end = (a < b ? b : a) + call->rows;
    *row0 = first < 0 ? 0 : (int32_t)(first < height ? first : height);
    *row1 = end < *row0 ? *row0 : (int32_t)(end < height ? end : height);
    return *row0 != *row1;
}

/* Run a call whose weights do not fit the window, some output channels at a time. */
static NeutronError run_blocks(run *r, slot *k) {
    nd_blocks blocks;
    NeutronError error = NEUTRON_NONE;
    nd_begin_blocks(r->on.model, &k->at, &k->info, &k->call, &blocks);
    while (error == NEUTRON_NONE && nd_next_blocks(r->on.model, &k->info, &blocks, &k->call))
        error = run_rows(r, k);
    k->decoded = false;
    decode(r, k);
    return error;
}

static NeutronError run_call(run *r, slot *k, uint32_t iteration) {
    int32_t row0, row1;
    decode(r, k);
    if (!rows_of(k, iteration, iteration + 1, &row0, &row1)) return NEUTRON_NONE;
    k->call.row0 = row0, k->call.row1 = row1;
    const bool whole = !ND_DECODERS || r->on.model->window == NULL ||
                       nd_place_constants(r->on.model, &k->at, &k->call);
    const NeutronError error = whole ? run_rows(r, k) : run_blocks(r, k);
    return error == NEUTRON_NONE ? account(r, k, row0, row1) : error;
}

static void run_copy(run *r, const nd_instruction *at) {
    NeutronDmaRecord d;
    nd_body(at, &d, sizeof d);
    uint8_t *source =
        nd_region_base(r->on.program, &r->on.buffers, d.source_region, d.source_index) +
        d.source_offset;
    uint8_t *target =
        nd_region_base(r->on.program, &r->on.buffers, d.target_region, d.source_index) +
        d.target_offset;
    if (ND_DECODERS && r->on.model->window != NULL && d.source_region == NEUTRON_REGION_WEIGHTS)
        nd_read_constants(r->on.model, d.source_offset, d.bytes, target);
    else r->config.copy(target, source, d.bytes, d.channel);

    NeutronEvent event = {.opcode = NEUTRON_OPCODE_DMA, .tag = d.channel, .bytes = d.bytes};
    if (ND_CYCLES) {
        const bool is_constant = d.source_region == NEUTRON_REGION_WEIGHTS;
        const uint32_t stored = is_constant ? stored_bytes(r, d.source_offset, d.bytes) : 0;
        const nm_cost cost = nm_dma_cost(r->on.program->target, d.bytes, stored);
        event.compute = cost.compute;
        event.memory = cost.memory;
        event.overhead = cost.overhead;
        nd_timeline_copy(&r->on.model->timeline, r->on.program->target, d.channel, &cost,
                         &event.start, &event.end);
    }
    nd_observe(r->on.model, &r->profile, &event);
}

static void run_wait(run *r, const nd_instruction *at) {
    NeutronWaitRecord wait;
    nd_body(at, &wait, sizeof wait);
    r->config.wait(wait.channel);
    nd_timeline_wait(&r->on.model->timeline, wait.channel);
}

static NeutronError run_instruction(run *r, slot *k, uint32_t iteration) {
    const NeutronError error = nd_check_deadline(&r->on, k->at.offset);
    if (error != NEUTRON_NONE) return error;
    switch (k->at.opcode) {
    case NEUTRON_OPCODE_CALL: return run_call(r, k, iteration);
    case NEUTRON_OPCODE_DMA: run_copy(r, &k->at); return NEUTRON_NONE;
    case NEUTRON_OPCODE_WAIT: run_wait(r, &k->at); return NEUTRON_NONE;
    default: return NEUTRON_NONE;
    }
}

/* Run instructions of `words` words from `*offset` on, without loops, and advance `*offset`. */
static NeutronError run_body(run *r, uint32_t *offset, uint32_t words, uint32_t iteration) {
    for (uint32_t ordinal = 0; words > 0; ordinal++) {
        slot *k = instruction_at(r, ordinal, *offset);
        const NeutronError error = run_instruction(r, k, iteration);
        if (error != NEUTRON_NONE) return error;
        *offset += k->at.bytes;
        words -= k->at.words;
    }
    return NEUTRON_NONE;
}

static NeutronError run_loop(run *r, const nd_instruction *at, uint32_t *next) {
    NeutronLoopRecord loop;
    nd_body(at, &loop, sizeof loop);
    const uint32_t body = *next;
    for (uint32_t iteration = 0; iteration < loop.iterations; iteration++) {
        *next = body;
        const NeutronError error = run_body(r, next, loop.body_words, iteration);
        if (error != NEUTRON_NONE) return error;
    }
    return NEUTRON_NONE;
}

static NeutronError run_code(run *r) {
    for (uint32_t offset = r->on.program->header.code_offset;;) {
        slot *k = instruction_at(r, 0, offset);
        const bool last = k->at.opcode == NEUTRON_OPCODE_END;
        offset += k->at.bytes;
        const NeutronError error = k->at.opcode == NEUTRON_OPCODE_LOOP
                                       ? run_loop(r, &k->at, &offset)
                                       : run_instruction(r, k, 0);
        if (error != NEUTRON_NONE || last) return error;
    }
}

#if ND_THREADS
/* Run an instruction or loop that the script leaves to the microcode. */
static NeutronError run_microcode(nd_run_context *on, uint32_t offset) {
    run *r = (run *)(void *)on;
    slot *k = instruction_at(r, 0, offset);
    offset += k->at.bytes;
    return k->at.opcode == NEUTRON_OPCODE_LOOP ? run_loop(r, &k->at, &offset)
                                               : run_instruction(r, k, 0);
}

/* Whether the run has an event sink, a trace or a profile, which need each call on its own. */
static bool is_observed(const run *r) {
    return r->on.model->sink != NULL || r->on.model->trace_lines || r->profile.at != NULL;
}

static NeutronError run_all(run *r) {
    const nd_script *script = r->on.model->script;
    if (script && script->single_threaded && r->on.pool == NULL) script = script->single_threaded;
    return script && !is_observed(r) ? nd_run_script(&r->on, script, run_microcode) : run_code(r);
}

/* Decide whether threads share the calls of this run, and wake them. */
static void start_sharing(run *r) {
    nd_pool *pool = r->on.model->pool;
    if (pool == NULL || r->on.program->work < worth_waking) return;
    r->on.degree = nd_tuning_begin_run(nd_pool_tuning(pool));
    r->timed = r->on.model->sink == NULL;
    if (r->on.degree == ND_SHARE_NOTHING) return;
    r->on.pool = pool;
    nd_pool_wake(pool);
}

/* Record the time of the run, unless it was observed or failed. */
static void finish_sharing(const run *r, NeutronError error) {
    if (r->timed && error == NEUTRON_NONE) nd_tuning_end_run(nd_pool_tuning(r->on.model->pool));
}
#else
static NeutronError run_all(run *r) { return run_code(r); }
static void start_sharing(run *r) { (void)r; }
static void finish_sharing(const run *r, NeutronError error) { (void)r, (void)error; }
#endif

NeutronError nd_run(struct NeutronModel *model, const NeutronDataConfig *data) {
    run r;
    memset(&r, 0, offsetof(run, slots));
    nd_text_reset(&model->detail);
    nd_text_reset(&model->trace);
    NeutronError error = nd_check_buffers(model, data, &r.on.buffers);
    if (error != NEUTRON_NONE) return error;
    r.on.model = model;
    r.on.program = &model->program;
    r.config = nd_config();
    if (model->timeout_seconds) {
        r.on.deadline = neutronClockMilliseconds() + (uint64_t)model->timeout_seconds * 1000;
    }
    if (r.on.program->profile_bytes) {
        r.profile.at = data->outputs[r.on.program->outputs + 1];
        r.profile.left = r.on.program->profile_bytes;
        if (r.profile.at) memset(r.profile.at, 0, r.profile.left); /* a zero record ends */
    }
    start_sharing(&r);
    nd_clear_buffers(model, &r.on.buffers);
    nd_timeline_start(&model->timeline);
    error = run_all(&r);
    finish_sharing(&r, error);
    model->cycles = nd_timeline_end(&model->timeline);
    model->traced = model->trace_lines;
    return error;
}
