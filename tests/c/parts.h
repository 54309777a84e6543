/* Shared by test_channels.c and test_columns.c: random calls of kernels with the operands of
 * conv2d, and such a call in parts, which must give the bytes of the whole. */
#ifndef TEST_PARTS_H
#define TEST_PARTS_H

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "nk_simd.h"
#include "operands.h"

enum { ROOM = 1 << 17 };

static uint8_t in[ROOM], out[ROOM], expected[ROOM];

static uint32_t below(uint32_t end) { /* xorshift32 */
    static uint32_t state = 88172645;
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state % end;
}

static void fill(uint8_t *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) at[i] = (uint8_t)below(256);
}

/* Sizes of a call's images; pixels lie up to two bytes apart. */
typedef struct {
    uint32_t height, width, inputs, columns, outputs;
} sizes;

static void start_call(nk_call *call, uint32_t kernel, const int32_t *params, uint32_t param_count,
                       const sizes *s, nk_operand weights, nk_operand table) {
    const uint32_t pixel_in = s->inputs + below(3), pixel_out = s->outputs + below(3);
    memset(call, 0, sizeof *call);
    call->kernel = kernel;
    call->units = call->length = 8;
    call->rounding = NEUTRON_ROUNDING_DOUBLE;
    call->params = params;
    call->param_count = param_count;
    call->operand_count = NK_CONV2D_OPERANDS;
    call->operands[NK_CONV2D_INPUT] =
        images(in, 1, s->height, s->width, s->inputs, pixel_in, sizeof in);
    call->operands[NK_CONV2D_WEIGHTS] = weights;
    call->operands[NK_CONV2D_TABLE] = table;
    call->operands[NK_CONV2D_OUTPUT] =
        images(out, 1, s->height, s->columns, s->outputs, pixel_out, sizeof out);
    call->row1 = (int32_t)s->height;
}

static void check_and_run(nk_call *call) {
    CHECK_EQUAL(neutronKernels[call->kernel](NK_CHECK, call), 0);
    CHECK_EQUAL(neutronKernels[call->kernel](NK_RUN, call), 0);
}

/* Makes part `at` of `parts` of a call; it stays until the next one. */
typedef void (*cut)(const nk_call *call, uint32_t at, uint32_t parts, nk_call *part);

static void parts_are_the_whole(const char *isa, nk_call *call, uint32_t parts, cut cut_part) {
    nk_call part;
    memset(out, 0xA5, sizeof out);
    check_and_run(call);
    memcpy(expected, out, sizeof out);
    memset(out, 0xA5, sizeof out);
    for (uint32_t at = parts; at-- > 0;) { /* in any order */
        cut_part(call, at, parts, &part);
        check_and_run(&part);
    }
    if (memcmp(expected, out, sizeof out) == 0) return;
    const nk_operand *o = &call->operands[NK_CONV2D_OUTPUT];
    fprintf(stderr, "%s: kernel %u, %u parts of %u columns and %u channels give other bytes\n", isa,
            call->kernel, parts, o->width, o->channels);
    CHECK(0);
}

/* Calls a test `cases` times on every instruction set that is there. */
static void on_every_set(int cases, void (*test)(const char *isa)) {
    static const char *const sets[] = {"portable", "avx2", "avx512vnni", "neon", "dotprod", "i8mm"};
    for (size_t at = 0; at < sizeof sets / sizeof sets[0]; at++)
        for (int repeat = 0; neutronSetIsa(sets[at]) && repeat < cases; repeat++) test(sets[at]);
}

#endif
