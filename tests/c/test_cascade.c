/* Loops that run several stripes at a time leave what they leave one by one: every byte that
 * somebody reads and every cycle, in random programs, most of which no compiler would make. Whoever
 * watches a run sees its calls one by one, so a run with an event sink is the one to compare with.
 */
#include "build.h"
#include "cascade.h"

enum {
    ROWS = 12,
    PITCH = 4,
    TENSOR = ROWS * PITCH,
    ROOM = 256,
    CASES = 20000,
    CALLS = 3,
    FILL = 0xA5
};

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint32_t next(uint32_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

static uint32_t ran; /* calls of the kernel */

/* Stands in for conv2d: three times the sum of the window's rows, plus one. */
static int32_t mix(uint32_t verb, nk_call *call) {
    const nk_operand *in = &call->operands[NK_CONV2D_INPUT],
                     *out = &call->operands[NK_CONV2D_OUTPUT];
    const nk_conv2d_params *p = (const nk_conv2d_params *)(const void *)call->params;
    if (verb == NK_CHECK)
        return nk_inside(in) && nk_inside(out) ? 0
                                               : nk_refuse(call, "an operand leaves its region");
    ran++;
    for (int32_t y = call->row0; y < call->row1; y++) {
        for (uint32_t x = 0; x < PITCH; x++) {
            uint32_t sum = 0;
            for (int32_t tap = 0; tap < p->kernel_h; tap++) {
                const int32_t at = y * p->stride_h - p->pad_top + tap * p->dilation_h;
                sum += at >= 0 && at < (int32_t)in->height ? nk_row(in, 0, at)[x] : 7;
            }
            nk_row(out, 0, y)[x] = (uint8_t)(3 * sum + 1);
        }
    }
    return 0;
}

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb, nk_call *call) = {[KERNEL] = mix};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

static NeutronOperandRecord tensor(uint8_t region, uint32_t offset, uint32_t ring) {
    const NeutronOperandRecord o = {.region = region,
                                    .offset = offset,
                                    .plane = ring * PITCH,
                                    .pitch = PITCH,
                                    .pixel = 2,
                                    .ring = ring,
                                    .batch = 1,
                                    .height = ROWS,
                                    .width = 2,
                                    .channels = 2};
    return o;
}

/* A tensor in scratch: mostly a ring in memory of its own, sometimes anywhere. */
static NeutronOperandRecord somewhere(uint32_t call) {
    const uint32_t ring = next(3) ? 1 + next(6) : ROWS;
    const uint32_t offset = next(8) ? call * 64 : next((ROOM - TENSOR) / PITCH) * PITCH;
    return tensor(NEUTRON_REGION_SCRATCH, offset, ring);
}

/* A call whose window is `kernel` rows high. */
static void append_mix(block *b, NeutronOperandRecord in, NeutronOperandRecord out, int32_t first,
                       uint32_t rows, int32_t step, int32_t kernel) {
    const uint32_t at = b->size;
    append_call(b, in, out, first, rows, step);
    const int32_t window[] = {kernel, 1, 1, 1, 1, 1, kernel / 2};
    memcpy(b->microcode + at + CALL_BYTES - 4 * NEUTRON_CONV2D_PARAM_WORDS, window, sizeof window);
}

static void start_program(block *b) {
    start(b);
    b->header.layout[0] = ROOM;
    b->sizes.scratch = ROOM;
    b->tensors[0].bytes = TENSOR;
    b->tensors[0].dims[1] = ROWS;
    b->tensors[1].bytes = ROOM;
    b->tensors[1].dims[1] = ROOM / PITCH;
    b->tensors[0].dims[2] = b->tensors[1].dims[2] = 2;
}

/* A layer of a random loop. */
typedef struct {
    NeutronOperandRecord in, out;
    int32_t first, kernel, step;
} layer;

/* Up to three layers one after the other, each a few rows behind the one before it, in one or two
 * calls each. `*in` is read, and becomes what the last one wrote; the calls of a run. */
static uint32_t random_loop(block *b, NeutronOperandRecord *in) {
    const uint32_t count = 1 + next(CALLS), rows = 1 + next(3), more = next(3),
                   parts = next(3) ? 1 : 2;
    const int down = next(2) == 0;
    const int32_t step = (int32_t)(rows * parts);
    const uint32_t iterations = (ROWS + rows * parts - 1) / (rows * parts) + more;
    layer layers[CALLS];
    int32_t lag = 0;
    for (layer *l = layers; l < layers + count; l++) {
        l->in = *in;
        l->out = *in = l + 1 == layers + count && !next(4) ? tensor(NEUTRON_REGION_OUTPUT, 0, ROWS)
                                                           : somewhere((uint32_t)(l - layers));
        l->kernel = next(2) ? 3 : 1;
        l->step = next(16) ? step : (int32_t)next(4);
        lag += l->kernel / 2 + (next(8) ? 0 : (int32_t)next(3)) - (next(8) ? 0 : 1);
        l->first = down ? ROWS - (int32_t)rows + lag : -lag;
        if (down) l->step = -l->step;
    }
    append_loop(b, iterations, count * parts * CALL_BYTES / 4);
    for (uint32_t part = 0; part < parts; part++) {
        for (const layer *l = layers; l < layers + count; l++) {
            const int32_t later = (int32_t)(part * rows);
            append_mix(b, l->in, l->out, l->first + (down ? -later : later), rows, l->step,
                       l->kernel);
        }
    }
    return iterations * count * parts;
}

/* Bytes of scratch become output: what is left there is seen, and the rest is not. */
static void append_reader(block *b) {
    const uint32_t first = next(2) ? 0 : next(ROOM / 2), bytes = ROOM - first - next(ROOM / 4);
    const NeutronDmaRecord copy = {.source_region = NEUTRON_REGION_SCRATCH,
                                   .target_region = NEUTRON_REGION_OUTPUT,
                                   .source_offset = first,
                                   .target_offset = first,
                                   .bytes = next(2) ? bytes : 1 + next(PITCH)};
    append_copy(b, copy);
}

static void random_program(block *b) {
    const uint32_t parts = 1 + next(3);
    uint32_t calls = 0;
    start_program(b);
    NeutronOperandRecord in = next(4) ? tensor(NEUTRON_REGION_INPUT, 0, ROWS) : somewhere(CALLS);
    for (uint32_t part = 0; part < parts; part++) {
        if (next(4)) {
            calls += random_loop(b, &in);
        } else {
            const NeutronOperandRecord out = somewhere(next(CALLS));
            append_mix(b, in, out, 0, ROWS - next(2), 0, next(2) ? 3 : 1);
            in = out;
            calls++;
        }
        if (!next(4)) append_reader(b);
    }
    append_reader(b);
    finish(b, calls);
}

static void ignore(void *context, const NeutronEvent *event) { (void)context, (void)event; }

typedef struct {
    _Alignas(16) uint8_t scratch[ROOM], output[ROOM];
    uint64_t cycles;
    uint32_t calls;
} result;

static result run(NeutronModelHandle model, NeutronEventSink sink) {
    static _Alignas(16) uint8_t input[TENSOR];
    result r = {{0}, {0}, 0, 0};
    const void *inputs[] = {input};
    void *outputs[] = {r.output, r.scratch, NULL, NULL};
    const NeutronDataConfig data = {inputs, outputs, NULL, NULL};
    for (int at = 0; at < TENSOR; at++) input[at] = (uint8_t)(at * 37);
    CHECK_EQUAL(neutronSetEventSink(model, sink, NULL), NEUTRON_NONE);
    ran = 0;
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(neutronGetCycles(model, &r.cycles), NEUTRON_NONE);
    r.calls = ran;
    return r;
}

static result last; /* of the run that nobody watched */

/* Whether fewer calls did the same. */
static bool same_with_less(const block *b) {
    NeutronModelHandle model = NULL;
    const NeutronModelConfig config = config_of(b);
    if (neutronModelPrepareChecked(&config, &b->sizes, &model) != NEUTRON_NONE) return false;
    CHECK_EQUAL(neutronSetFill(model, FILL), NEUTRON_NONE);
    const result one_by_one = run(model, ignore), together = run(model, NULL);
    CHECK(memcmp(one_by_one.output, together.output, ROOM) == 0);
    CHECK_EQUAL(together.cycles, one_by_one.cycles);
    CHECK(together.calls <= one_by_one.calls);
    CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
    last = together;
    return together.calls < one_by_one.calls;
}

static void random_programs(void) {
    uint32_t fewer = 0;
    for (int at = 0; at < CASES && !check_failures; at++) {
        block b;
        random_program(&b);
        fewer += same_with_less(&b);
        if (check_failures) fprintf(stderr, "case %d\n", at);
    }
    CHECK(fewer > CASES / 8);
}

static const NeutronDmaRecord all_of_scratch = {
    .source_region = NEUTRON_REGION_SCRATCH, .target_region = NEUTRON_REGION_OUTPUT, .bytes = ROOM};

/* Three layers through small rings: one call each. */
static void a_cascade_runs_at_once(void) {
    const NeutronOperandRecord first = tensor(NEUTRON_REGION_SCRATCH, 0, 4),
                               second = tensor(NEUTRON_REGION_SCRATCH, 64, 1);
    block b;
    start_program(&b);
    append_loop(&b, 14, 3 * CALL_BYTES / 4);
    append_mix(&b, tensor(NEUTRON_REGION_INPUT, 0, ROWS), first, 0, 1, 1, 1);
    append_mix(&b, first, second, -1, 1, 1, 3);
    append_mix(&b, second, tensor(NEUTRON_REGION_OUTPUT, 0, ROWS), -1, 1, 1, 1);
    finish(&b, 42);
    CHECK(same_with_less(&b));
    CHECK_EQUAL(last.calls, 3);
}

/* The same where each iteration calls every layer twice, and two rings share their bytes. */
static void layers_of_several_calls_run_at_once(void) {
    const NeutronOperandRecord first = tensor(NEUTRON_REGION_SCRATCH, 0, 4),
                               second = tensor(NEUTRON_REGION_SCRATCH, 64, 1),
                               third = tensor(NEUTRON_REGION_SCRATCH, 64, 2);
    block b;
    start_program(&b);
    append_loop(&b, 7, 8 * CALL_BYTES / 4);
    for (int32_t part = 0; part < 2; part++) {
        append_mix(&b, tensor(NEUTRON_REGION_INPUT, 0, ROWS), first, part, 1, 2, 1);
        append_mix(&b, first, second, part - 1, 1, 2, 3);
        append_mix(&b, second, tensor(NEUTRON_REGION_SCRATCH, 128, 1), part - 1, 1, 2, 1);
        append_mix(&b, tensor(NEUTRON_REGION_SCRATCH, 128, 1), third, part - 1, 1, 2, 1);
    }
    finish(&b, 56);
    CHECK(same_with_less(&b));
    CHECK_EQUAL(last.calls, 4);
}

static void append_sliding(block *b, uint32_t from, uint32_t to, int32_t first, int32_t step) {
    append_loop(b, 6, CALL_BYTES / 4);
    append_mix(b, tensor(NEUTRON_REGION_SCRATCH, from, ROWS),
               tensor(NEUTRON_REGION_SCRATCH, to, ROWS), first, 2, step, 3);
}

/* Outputs that follow their inputs through the same memory, up and down: made beside it in one call
 * each, and read where they are. */
static void sliding_tensors_run_at_once(void) {
    block b;
    start_program(&b);
    append_sliding(&b, 12, 0, 0, 2);
    append_sliding(&b, 0, 12, 10, -2);
    append_sliding(&b, 12, 0, 0, 2);
    append_mix(&b, tensor(NEUTRON_REGION_SCRATCH, 0, ROWS), tensor(NEUTRON_REGION_OUTPUT, 0, ROWS),
               0, ROWS, 0, 1);
    finish(&b, 19);
    CHECK(same_with_less(&b));
    CHECK_EQUAL(last.calls, 4);
    for (uint32_t at = 0; at < 12; at++)
        CHECK_EQUAL(last.scratch[at], FILL); /* nothing came back */
}

/* The same where somebody reads all of scratch afterwards. */
static void sliding_tensors_come_back(void) {
    block b;
    start_program(&b);
    append_sliding(&b, 12, 0, 0, 2);
    append_sliding(&b, 0, 12, 10, -2);
    append_copy(&b, all_of_scratch);
    finish(&b, 12);
    CHECK(same_with_less(&b));
    CHECK_EQUAL(last.calls, 2);
}

int main(void) {
    a_cascade_runs_at_once();
    layers_of_several_calls_run_at_once();
    sliding_tensors_run_at_once();
    sliding_tensors_come_back();
    random_programs();
    return check_result();
}
