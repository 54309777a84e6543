/* Threads: a pool runs every part once, and rows computed by several threads are the rows one
 * thread computes, for real kernels and every number of threads. */
#define _DEFAULT_SOURCE /* usleep */

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "model.h"
#include "split.h"
#include "operands.h"

enum { ROUNDS = 200 };

static atomic_uint seen[ND_MAX_PARTS];

static void mark(void *job, uint32_t part) {
    CHECK(job == seen);
    atomic_fetch_add(&seen[part], 1);
}

static void every_part_once(void) {
    for (uint32_t threads = 2; threads <= ND_MAX_THREADS; threads *= 2) {
        nd_pool *pool = nd_pool_make(threads);
        CHECK(pool != NULL);
        CHECK_EQUAL(nd_pool_threads(pool), threads);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            const uint32_t parts =
                1 + round % ND_MAX_PARTS; /* fewer and more than there are threads */
            memset(seen, 0, sizeof seen);
            if (round % 50 == 0) usleep(2000); /* until they sleep */
            if (round % 4 == 0) nd_pool_wake(pool);
            nd_pool_run(pool, mark, seen, parts);
            for (uint32_t part = 0; part < ND_MAX_PARTS; part++)
                CHECK_EQUAL(seen[part], part < parts);
        }
        nd_pool_free(pool);
    }
    CHECK_EQUAL(nd_pool_threads(NULL), 1);
    nd_pool_free(NULL);
}

static uint32_t state = 88172645;

static uint32_t any(void) { /* xorshift32 */
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state;
}

enum {
    ROWS = 37,
    COLUMNS = 11,
    CHANNELS = 24,
    WIDE = 72,
    ROOM = 2 * ROWS * 2 * COLUMNS * 2 * CHANNELS
};

/* A byte image of two batches in `at`. */
static nk_operand image(uint8_t *at, uint32_t height, uint32_t width, uint32_t channels) {
    return images(at, 2, height, width, channels, channels, ROOM);
}

static uint8_t one[ROOM], two[ROOM], out[ROOM], expected[ROOM], weights[9 * CHANNELS * CHANNELS],
    table[12 * WIDE];

typedef struct {
    const char *name;
    uint32_t kernel;
    void (*fill)(nk_call *call, int32_t *params);
} sample;

/* Zero points of 0 and the whole range: last three parameters of most kernels. */
static void whole_range(int32_t *last) { last[0] = 0, last[1] = -128, last[2] = 127; }

static void conv2d(nk_call *call, int32_t *params) {
    const nk_conv2d_params p = {3, 3, 1, 1, 1, 1, 1, 1, 1, 5, 0, 0, -128, 127};
    memcpy(params, &p, sizeof p);
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[1] = flat(weights, sizeof weights);
    call->operands[2] = flat(table, sizeof table);
    call->operands[4] = image(out, ROWS, COLUMNS, CHANNELS);
}

static void depthwise(nk_call *call, int32_t *params) {
    const nk_depthwise_conv2d_params p = {3, 3, 2, 2, 1, 1, 1, 1, 1, -4, 0, 0, -128, 127};
    memcpy(params, &p, sizeof p);
    call->operands[0] = image(one, 2 * ROWS, 2 * COLUMNS, CHANNELS);
    call->operands[1] = flat(weights, 9 * CHANNELS);
    call->operands[2] = flat(table, sizeof table);
    call->operands[4] = image(out, ROWS, COLUMNS, CHANNELS);
}

static void transpose_conv2d(nk_call *call, int32_t *params) {
    const nk_transpose_conv2d_params p = {3, 3, 2, 2, 0, 0, 3, 0, 0, -128, 127};
    memcpy(params, &p, sizeof p);
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[1] = flat(weights, sizeof weights);
    call->operands[2] = flat(table, sizeof table);
    call->operands[4] = image(out, 2 * ROWS, 2 * COLUMNS, CHANNELS);
}

static void fully_connected(nk_call *call, int32_t *params) {
    whole_range(params + 2);
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[1] = flat(weights, CHANNELS * CHANNELS);
    call->operands[2] = flat(table, sizeof table);
    call->operands[4] = image(out, ROWS, COLUMNS, CHANNELS);
}

static void pool2d(nk_call *call,
                   int32_t *params) { /* maximum and average have the same parameters */
    const nk_max_pool2d_params p = {3, 3, 1, 1, 1, 1, -128, 127};
    memcpy(params, &p, sizeof p);
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[2] = image(out, ROWS, COLUMNS, CHANNELS);
}

/* Few rows, so that channels are shared. */
static void pointwise(nk_call *call, int32_t *params) {
    const nk_conv2d_params p = {1, 1, 1, 1, 1, 1, 0, 0, 1, 5, 0, 0, -128, 127};
    memcpy(params, &p, sizeof p);
    call->operands[0] = image(one, 3, 2 * ROWS, WIDE);
    call->operands[1] = flat(weights, WIDE * WIDE);
    call->operands[2] = flat(table, sizeof table);
    call->operands[4] = image(out, 3, 2 * ROWS, WIDE);
}

static void vectors(nk_call *call, int32_t *params) {
    whole_range(params + 2);
    call->operands[0] = image(one, 1, ROWS, WIDE);
    call->operands[1] = flat(weights, WIDE * WIDE);
    call->operands[2] = flat(table, sizeof table);
    call->operands[4] = image(out, 1, ROWS, WIDE);
}

static void softmax(nk_call *call, int32_t *params) {
    whole_range(params);
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[1] = flat(weights, 1024);
    call->operands[3] = image(out, ROWS, COLUMNS, CHANNELS);
}

static void batch_matmul(nk_call *call, int32_t *params) {
    const nk_batch_matmul_params p = {0, 1, 2, 2, 2, 3, -3, 1 << 30, -9, 0, -128, 127};
    memcpy(params, &p, sizeof p);
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[1] = image(two, ROWS, COLUMNS, CHANNELS);
    call->operands[3] = image(out, ROWS, COLUMNS, COLUMNS);
}

static void add(nk_call *call, int32_t *params) {
    const nk_add_params p = {3, 1 << 30, -1, -5, 1 << 30, 0, 0, 1 << 30, -18, 0, -128, 127};
    memcpy(params, &p, sizeof p);
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[1] = image(two, ROWS, COLUMNS, CHANNELS);
    call->operands[2] = image(out, ROWS, COLUMNS, CHANNELS);
}

static void add_in_place(nk_call *call, int32_t *params) {
    add(call, params);
    call->operands[1] = call->operands[2];
}

static void lut(nk_call *call, int32_t *params) {
    params[0] = 256;
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[1] = flat(weights, 256);
    call->operands[2] = image(out, ROWS, COLUMNS, CHANNELS);
}

static void reduce(nk_call *call, int32_t *params) {
    const nk_reduce_params p = {
        .axes = 4, .multiplier = 1 << 30, .shift = -3, .clamp_low = -128, .clamp_high = 127};
    memcpy(params, &p, sizeof p);
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[NK_REDUCE_OUTPUT] = image(out, ROWS, 1, CHANNELS);
}

static void pad(nk_call *call, int32_t *params) {
    const nk_pad_params p = {.before_height = 3, .before_width = 2, .value = 9};
    memcpy(params, &p, sizeof p);
    call->operands[0] = image(one, ROWS, COLUMNS, CHANNELS);
    call->operands[1] = image(out, ROWS + 8, COLUMNS + 5, CHANNELS);
}

static const sample samples[] = {
    {"conv2d", NEUTRON_KERNEL_CONV2D, conv2d},
    {"depthwise_conv2d", NEUTRON_KERNEL_DEPTHWISE_CONV2D, depthwise},
    {"transpose_conv2d", NEUTRON_KERNEL_TRANSPOSE_CONV2D, transpose_conv2d},
    {"fully_connected", NEUTRON_KERNEL_FULLY_CONNECTED, fully_connected},
    {"conv2d of few rows", NEUTRON_KERNEL_CONV2D, pointwise},
    {"fully_connected of one row", NEUTRON_KERNEL_FULLY_CONNECTED, vectors},
    {"max_pool2d", NEUTRON_KERNEL_MAX_POOL2D, pool2d},
    {"avg_pool2d", NEUTRON_KERNEL_AVG_POOL2D, pool2d},
    {"softmax", NEUTRON_KERNEL_SOFTMAX, softmax},
    {"batch_matmul", NEUTRON_KERNEL_BATCH_MATMUL, batch_matmul},
    {"add", NEUTRON_KERNEL_ADD, add},
    {"add in place", NEUTRON_KERNEL_ADD, add_in_place},
    {"lut", NEUTRON_KERNEL_LUT, lut},
    {"reduce", NEUTRON_KERNEL_REDUCE, reduce},
    {"pad", NEUTRON_KERNEL_PAD, pad},
};

static void fill_bytes(uint8_t *to, size_t size) {
    for (size_t at = 0; at < size; at++) to[at] = (uint8_t)(any() >> 13);
}

static void make(const sample *s, nk_call *call, int32_t *params, nd_kernel_info *info) {
    memset(call, 0, sizeof *call);
    CHECK(nd_kernel(s->kernel, info));
    call->kernel = s->kernel;
    call->units = call->length = 8;
    call->rounding = NEUTRON_ROUNDING_DOUBLE;
    call->params = params;
    call->param_count = info->params;
    call->operand_count = info->operands;
    s->fill(call, params);
    call->row1 = (int32_t)call->operands[info->output].height;
}

/* What the calls read: the same every time. */
static void fill_memory(uint32_t channels) {
    state = 88172645;
    fill_bytes(one, sizeof one);
    fill_bytes(two, sizeof two);
    fill_bytes(out, sizeof out);
    fill_bytes(weights, sizeof weights);
    for (uint32_t at = 0; at < 3 * channels; at++) { /* bias, multiplier, shift */
        const int32_t word = at < channels       ? (int32_t)(any() % 2000)
                             : at < 2 * channels ? 1 << 30
                                                 : -8;
        memcpy(table + 4 * at, &word, sizeof word);
    }
}

static void threads_change_nothing(const sample *s, nd_pool *pool) {
    nk_call call;
    nd_kernel_info info;
    int32_t params[32] = {0};
    make(s, &call, params, &info);
    if (neutronKernels[s->kernel](NK_CHECK, &call) != 0) {
        fprintf(stderr, "%s: %s\n", s->name, call.why);
        CHECK(0);
        return;
    }
    CHECK(nd_rows_independent(&call, &info));
    fill_memory(call.operands[info.output].channels);
    CHECK_EQUAL(neutronKernels[s->kernel](NK_RUN, &call), 0);
    memcpy(expected, out, sizeof out);
    static const uint32_t degrees[] = {ND_SHARE_ALL, ND_SHARE_ROWS, ND_SHARE_ALL};
    for (uint32_t at = 0; at < sizeof degrees / sizeof degrees[0]; at++) {
        fill_memory(call.operands[info.output].channels);
        CHECK_EQUAL(nd_run_parallel(pool, degrees[at], &info, &call), 0);
        if (memcmp(expected, out, sizeof out) != 0) {
            fprintf(stderr, "%s: %u threads give other bytes\n", s->name, nd_pool_threads(pool));
            CHECK(0);
        }
    }
}

static void dependent_rows_are_left_alone(void) {
    nk_call call;
    nd_kernel_info info;
    int32_t params[32] = {0};
    make(&samples[0], &call, params, &info);
    CHECK(nd_rows_independent(&call, &info));
    call.operands[NK_CONV2D_OUTPUT].data = one + 1000; /* over the input */
    CHECK(!nd_rows_independent(&call, &info));
    call.operands[NK_CONV2D_OUTPUT] = call.operands[NK_CONV2D_INPUT];
    CHECK(!nd_rows_independent(&call, &info)); /* in place is for element-wise kernels */
    call.operands[NK_CONV2D_OUTPUT] = image(out, ROWS, COLUMNS, CHANNELS);
    call.operands[NK_CONV2D_OUTPUT].ring = 8; /* later rows overwrite earlier ones */
    CHECK(!nd_rows_independent(&call, &info));
    call.row1 = 8;
    CHECK(nd_rows_independent(&call, &info));
    call.operands[NK_CONV2D_OUTPUT].pitch -= 1;
    CHECK(!nd_rows_independent(&call, &info));
    call.operands[NK_CONV2D_OUTPUT].pitch += 1;
    call.operands[NK_CONV2D_OUTPUT].plane = 100; /* images overlap */
    CHECK(!nd_rows_independent(&call, &info));
    info.dense = 1;
    call.operands[NK_CONV2D_OUTPUT] = image(out, ROWS, COLUMNS, CHANNELS);
    CHECK(!nd_rows_independent(&call, &info));
}

int main(void) {
    every_part_once();
    for (uint32_t threads = 2; threads <= 4; threads++) {
        nd_pool *pool = nd_pool_make(threads);
        for (size_t at = 0; at < sizeof samples / sizeof samples[0]; at++)
            threads_change_nothing(&samples[at], pool);
        nd_pool_free(pool);
    }
    dependent_rows_are_left_alone();
    return check_result();
}
