/* Random numbers, and operands of random sizes, types and places. Each operand is an allocation of
 * exactly its size; release() frees them all. For one program each: the state is the header's. */
#ifndef TEST_RANDOM_OPERANDS_H
#define TEST_RANDOM_OPERANDS_H

#include <stdlib.h>
#include <string.h>

#include "nk.h"

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint32_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* A number in [low, high]. */
static int32_t between(int32_t low, int32_t high) {
    return low + (int32_t)(next() % (uint32_t)(high - low + 1));
}

static int one_in(uint32_t n) { return next() % n == 0; }

static int32_t any_of(const int32_t *values, uint32_t count) { return values[next() % count]; }
#define ANY_OF(...) \
    any_of((const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

/* Bytes: uniform, one value nearly everywhere, or the extremes alone. */
static void fill_bytes(uint8_t *to, size_t count) {
    const uint32_t kind = next() % 4;
    const uint8_t common = (uint8_t)next();
    for (size_t i = 0; i < count; ++i) {
        const uint8_t any = (uint8_t)next();
        to[i] = kind == 0   ? (any & 1 ? 0x80 : 0x7F)
                : kind == 1 ? (any < 230 ? common : (uint8_t)next())
                : kind == 2 ? 0x80
                            : any;
    }
    if (kind == 2 && one_in(2))
        for (size_t i = 0; i < count; ++i) to[i] = (uint8_t)next();
}

typedef struct {
    uint8_t *data;
    size_t size;
} memory;

static memory memories[NEUTRON_MAX_OPERANDS];
static uint32_t used;

static void release(void) {
    while (used) free(memories[--used].data);
}

static uint8_t *allocate(size_t size) {
    memories[used] = (memory){malloc(size ? size : 1), size};
    fill_bytes(memories[used].data, size);
    return memories[used++].data;
}

/* The ends of the range of 16 bits, or the lower one alone. */
static void fill_extremes16(uint8_t *to, size_t bytes, int lowest) {
    for (size_t i = 0; i + 1 < bytes; i += 2)
        nk_store16(to + i, lowest || one_in(2) ? INT16_MIN : INT16_MAX);
}

/* An image operand with gaps between pixels, rows and images, and a ring of at least `rows` rows.
 */
static nk_operand image(uint8_t dtype, uint32_t batch, uint32_t height, uint32_t width,
                        uint32_t channels, uint32_t rows) {
    const uint32_t item = dtype == NEUTRON_DTYPE_INT32 ? 4 : dtype == NEUTRON_DTYPE_INT16 ? 2 : 1;
    nk_operand o = {.batch = batch,
                    .height = height,
                    .width = width,
                    .channels = channels,
                    .dtype = dtype,
                    .present = 1};
    o.ring = one_in(2) ? height : (uint32_t)between((int32_t)rows, (int32_t)height);
    const uint32_t gap = dtype == NEUTRON_DTYPE_INT16 ? 2 : 1;
    o.pixel = channels * item + (one_in(4) ? gap * (uint32_t)between(1, 5) : 0);
    o.pitch = o.pixel * width + (one_in(4) ? gap * (uint32_t)between(1, 9) : 0);
    o.plane = o.pitch * o.ring + (one_in(4) ? gap * (uint32_t)between(1, 9) : 0);
    const size_t size = (size_t)(batch - 1) * o.plane + (size_t)(o.ring - 1) * o.pitch +
                        (size_t)(width - 1) * o.pixel + channels * item;
    o.available = (uint32_t)size;
    o.data = allocate(size);
    if (dtype == NEUTRON_DTYPE_INT16 && one_in(4)) fill_extremes16(o.data, size, one_in(3));
    return o;
}

static nk_operand flat(size_t size) {
    nk_operand o = {.plane = (uint32_t)size,
                    .pitch = (uint32_t)size,
                    .pixel = (uint32_t)size,
                    .ring = 1,
                    .batch = 1,
                    .height = 1,
                    .width = 1,
                    .channels = (uint32_t)size,
                    .dtype = NEUTRON_DTYPE_UINT8,
                    .present = 1,
                    .available = (uint32_t)size};
    o.data = allocate(size);
    o.region = NEUTRON_REGION_WEIGHTS;
    return o;
}

static int32_t any_multiplier(void) {
    return one_in(6) ? ANY_OF(0, 1, 1 << 30, INT32_MAX, (1 << 30) + 1)
                     : (int32_t)((1u << 30) | (next() >> 2));
}

/* bias, multiplier and shift of `channels`, filled up to groups of 8; `usual` ones are such as
 * networks have. */
static nk_operand table(uint32_t channels, uint8_t rounding, int edges, int usual) {
    const uint32_t padded = nk_blocks(channels, 8) * 8;
    nk_operand o = flat((size_t)12 * padded);
    const int wild = one_in(8) && !usual, spread = between(0, 14);
    for (uint32_t c = 0; c < padded; ++c) {
        int32_t bias = one_in(20) ? ANY_OF(0, 1 << 23, -(1 << 23), (1 << 29) - 1, 1 << 29,
                                           INT32_MIN, INT32_MAX)
                                  : between(-20000, 20000);
        int32_t shift = -between(0, spread), multiplier = any_multiplier();
        if (usual) {
            bias = between(-20000, 20000), shift = -between(7, 12);
            multiplier = between(1 << 30, INT32_MAX - 1);
        }
        if (edges && multiplier > 0 && shift <= 0) {
            /* An accumulator within 2 of where the output steps from k - 1 to k; inputs are 0 then.
             */
            const int64_t k = between(-140, 140), step = (2 * k - 1) * ((int64_t)1 << (30 - shift));
            const int64_t near = step / multiplier + between(-2, 2);
            if (near > -(1 << 28) && near < 1 << 28) bias = (int32_t)near;
        }
        if (wild && one_in(4))
            shift = between(-40, 6), multiplier = one_in(9) ? -multiplier : multiplier;
        if (rounding == NEUTRON_ROUNDING_EXACT31) shift = between(30, 46);
        if (rounding == NEUTRON_ROUNDING_EXACT53)
            shift = between(50, 70) | between(0, (1 << 22) - 1) << 8;
        memcpy(o.data + 4 * c, &bias, 4);
        memcpy(o.data + 4 * (padded + c), &multiplier, 4);
        memcpy(o.data + 4 * (2 * padded + c), &shift, 4);
    }
    return o;
}

static uint8_t any_rounding(void) {
    return (uint8_t)(one_in(6) ? ANY_OF(NEUTRON_ROUNDING_EXACT31, NEUTRON_ROUNDING_EXACT53)
                               : NEUTRON_ROUNDING_DOUBLE);
}

static uint8_t any_dtype(void) {
    return (uint8_t)(one_in(3) ? NEUTRON_DTYPE_UINT8 : NEUTRON_DTYPE_INT8);
}

/* Zero point and clamp of a byte type: its range, one side at the zero point, anything, or what no
 * compiler makes. */
static void any_clamp(uint8_t dtype, int32_t *zero, int32_t *low, int32_t *high) {
    const int32_t lowest = dtype == NEUTRON_DTYPE_INT8 ? -128 : 0;
    *zero = one_in(3) ? lowest : between(lowest, lowest + 255);
    *low = one_in(2) ? lowest : one_in(2) ? *zero : between(lowest, lowest + 255);
    *high = one_in(2) ? lowest + 255 : between(*low, lowest + 255);
    if (one_in(30)) *low = -1000;
    if (one_in(30)) *high = 1000;
    if (one_in(30)) *zero = between(-100000, 100000);
}

static nk_operand no_operand(void) {
    const nk_operand none = {0};
    return none;
}

#endif
