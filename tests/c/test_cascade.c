/* Loops that run several stripes at a time leave what they leave one by one: every byte of memory
 * and every cycle, on random loops, most of which no compiler would make. Whoever watches a run
 * sees its calls one by one, so a run with an event sink is the one to compare with. */
#include "build.h"
#include "cascade.h"

enum { ROWS = 12, PITCH = 4, TENSOR = ROWS * PITCH, ROOM = 256, CASES = 20000, CALLS = 3 };

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

/* Up to three calls one after the other, each a few rows behind the one before it. */
static void random_loop(block *b) {
    const uint32_t calls = 1 + next(CALLS), rows = 1 + next(3), more = next(3);
    const int down = next(2) == 0;
    const uint32_t iterations = (ROWS + rows - 1) / rows + more;
    int32_t lag = 0;
    start(b);
    b->header.layout[0] = ROOM;
    b->sizes.scratch = ROOM;
    b->tensors[0].bytes = b->tensors[1].bytes = TENSOR;
    b->tensors[0].dims[1] = b->tensors[1].dims[1] = ROWS;
    b->tensors[0].dims[2] = b->tensors[1].dims[2] = 2;
    NeutronOperandRecord in = next(4) ? tensor(NEUTRON_REGION_INPUT, 0, ROWS) : somewhere(CALLS);
    append_loop(b, iterations, calls * CALL_BYTES / 4);
    for (uint32_t call = 0; call < calls; call++) {
        const NeutronOperandRecord out =
            call + 1 == calls && next(2) ? tensor(NEUTRON_REGION_OUTPUT, 0, ROWS) : somewhere(call);
        const int32_t kernel = next(2) ? 3 : 1, step = next(16) ? (int32_t)rows : (int32_t)next(4);
        lag += kernel / 2 + (next(8) ? 0 : (int32_t)next(3)) - (next(8) ? 0 : 1);
        append_mix(b, in, out, down ? ROWS - (int32_t)rows + lag : -lag, rows, down ? -step : step,
                   kernel);
        in = out;
    }
    finish(b, calls * iterations);
}

static void ignore(void *context, const NeutronEvent *event) { (void)context, (void)event; }

typedef struct {
    _Alignas(16) uint8_t scratch[ROOM], output[TENSOR];
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

/* Whether fewer calls did the same. */
static bool same_with_less(const block *b) {
    NeutronModelHandle model = NULL;
    const NeutronModelConfig config = config_of(b);
    if (neutronModelPrepareChecked(&config, &b->sizes, &model) != NEUTRON_NONE) return false;
    CHECK_EQUAL(neutronSetFill(model, 0xA5), NEUTRON_NONE);
    const result one_by_one = run(model, ignore), together = run(model, NULL);
    CHECK(memcmp(one_by_one.scratch, together.scratch, ROOM) == 0);
    CHECK(memcmp(one_by_one.output, together.output, TENSOR) == 0);
    CHECK_EQUAL(together.cycles, one_by_one.cycles);
    CHECK(together.calls <= one_by_one.calls);
    CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
    return together.calls < one_by_one.calls;
}

static void random_loops(void) {
    uint32_t fewer = 0;
    for (int at = 0; at < CASES && !check_failures; at++) {
        block b;
        random_loop(&b);
        fewer += same_with_less(&b);
    }
    CHECK(fewer > CASES / 20);
}

/* Three layers through small rings: one call each. */
static void a_cascade_runs_at_once(void) {
    const NeutronOperandRecord first = tensor(NEUTRON_REGION_SCRATCH, 0, 4),
                               second = tensor(NEUTRON_REGION_SCRATCH, 64, 1);
    block b;
    random_loop(&b);
    b.size = CODE_AT;
    append_loop(&b, 14, 3 * CALL_BYTES / 4);
    append_mix(&b, tensor(NEUTRON_REGION_INPUT, 0, ROWS), first, 0, 1, 1, 1);
    append_mix(&b, first, second, -1, 1, 1, 3);
    append_mix(&b, second, tensor(NEUTRON_REGION_OUTPUT, 0, ROWS), -1, 1, 1, 1);
    finish(&b, 42);
    CHECK(same_with_less(&b));
    CHECK_EQUAL(ran, 3);
}

/* An output that follows its input through the same memory: computed beside it, in one call. */
static void a_sliding_tensor_runs_at_once(void) {
    block b;
    random_loop(&b);
    b.size = CODE_AT;
    append_loop(&b, 6, CALL_BYTES / 4);
    append_mix(&b, tensor(NEUTRON_REGION_SCRATCH, 12, ROWS),
               tensor(NEUTRON_REGION_SCRATCH, 0, ROWS), 0, 2, 2, 3);
    finish(&b, 6);
    CHECK(same_with_less(&b));
    CHECK_EQUAL(ran, 1);
}

int main(void) {
    a_cascade_runs_at_once();
    a_sliding_tensor_runs_at_once();
    random_loops();
    return check_result();
}
