/* Shared by the kernels that map elements of 8 or 16 bits to such: reading either sign, checking
 * parameters, and walking operands in runs as long as their layout allows. Inputs broadcast by
 * numpy's rule: a dimension of 1 repeats.
 */
#ifndef NK_ELEMENTWISE_H
#define NK_ELEMENTWISE_H

#include <string.h>

#include "nk.h"
#include "nk_math.h"

static inline int nk_is_byte(const nk_operand *o) {
    return o->dtype == NEUTRON_DTYPE_INT8 || o->dtype == NEUTRON_DTYPE_UINT8;
}

/* Activations of 16 bits; their zero point is always 0. */
static inline int nk_is_wide(const nk_operand *o) { return o->dtype == NEUTRON_DTYPE_INT16; }

/* Bytes of an element of an operand of 8 or 16 bits. */
static inline uint32_t nk_item(const nk_operand *o) { return nk_is_wide(o) ? 2 : 1; }

/* 1 when both operands are of one type of 8 or 16 bits. */
static inline int nk_same_type(const nk_operand *a, const nk_operand *b) {
    return a->dtype == b->dtype && (nk_is_byte(a) || nk_is_wide(a));
}

/* What turns a stored byte into its value without a branch: 0x80 for INT8, 0 for UINT8. */
static inline int32_t nk_flip(const nk_operand *o) {
    return o->dtype == NEUTRON_DTYPE_INT8 ? 0x80 : 0;
}

static inline int32_t nk_value(uint8_t byte, int32_t flip) { return (byte ^ flip) - flip; }

/* Memory comes from callers and files, so elements of 16 bits may lie at any address. */
static inline int32_t nk_load16(const uint8_t *from) {
    int16_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void nk_store16(uint8_t *to, int32_t value) {
    const int16_t stored = (int16_t)value;
    memcpy(to, &stored, sizeof stored);
}

/* The element at an address of an operand, of either width. */
static inline int32_t nk_read(const nk_operand *o, const uint8_t *from) {
    return nk_is_wide(o) ? nk_load16(from) : nk_value(*from, nk_flip(o));
}

static inline void nk_write(const nk_operand *o, uint8_t *to, int32_t value) {
    if (nk_is_wide(o)) nk_store16(to, value);
    else *to = (uint8_t)value;
}

/* Wherever a table's bytes come from a file, an INT32 in it may lie at any address. */
static inline int32_t nk_load32(const uint8_t *from) {
    int32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* A zero point of an 8-bit type; keeps every (x - zero) within 9 bits. */
static inline int nk_zero_ok(int32_t zero) { return zero >= -128 && zero <= 255; }

/* A multiplier and shift that nk_mbqm accepts, with the shift at most `most`. */
static inline int nk_scale_ok(int32_t multiplier, int32_t shift, int32_t most) {
    return multiplier >= 0 && shift >= -31 && shift <= most;
}

/* Zero point and clamp of an 8-bit output. */
static inline int nk_output_ok(int32_t zero, int32_t low, int32_t high) {
    return nk_zero_ok(zero) && nk_zero_ok(low) && nk_zero_ok(high) && low <= high;
}

/* A clamp inside 16 bits. */
static inline int nk_clamp16_ok(int32_t low, int32_t high) {
    return low >= INT16_MIN && high <= INT16_MAX && low <= high;
}

/* The same two questions of an operand of either width. */
static inline int nk_zero_of(const nk_operand *o, int32_t zero) {
    return nk_is_wide(o) ? zero == 0 : nk_zero_ok(zero);
}

static inline int nk_output_of(const nk_operand *o, int32_t zero, int32_t low, int32_t high) {
    return nk_is_wide(o) ? zero == 0 && nk_clamp16_ok(low, high) : nk_output_ok(zero, low, high);
}

static inline int nk_same_shape(const nk_operand *a, const nk_operand *b) {
    return a->batch == b->batch && a->height == b->height && a->width == b->width &&
           a->channels == b->channels;
}

static inline int nk_broadcasts(const nk_operand *a, const nk_operand *to) {
    return (a->batch == to->batch || a->batch == 1) &&
           (a->height == to->height || a->height == 1) &&
           (a->width == to->width || a->width == 1) &&
           (a->channels == to->channels || a->channels == 1);
}

/* `count` elements of the output; steps are bytes, a step of 0 repeats the input's element. */
typedef void (*nk_run2)(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                        uint32_t step_b, uint8_t *out, uint32_t count);

/* 1 when a whole row of `o` is one run against a row of `to`: dense, or a single element that
 * repeats. */
static inline int nk_row_is_run(const nk_operand *o, const nk_operand *to) {
    if (o->width == 1 && o->channels == 1) return 1;
    return o->width == to->width && o->channels == to->channels &&
           (o->pixel == o->channels * nk_item(o) || o->width == 1);
}

static inline uint8_t *nk_broadcast_row(const nk_operand *o, uint32_t image, int32_t y) {
    return nk_row(o, o->batch == 1 ? 0 : image, o->height == 1 ? 0 : y);
}

/* Rows from y on, at most `rows` of them, that are one run: they lie one after the other without
 * gaps, or are one element that repeats. */
static inline int32_t nk_rows_in_run(const nk_operand *o, int32_t y, int32_t rows) {
    const int repeats = o->width == 1 && o->channels == 1;
    if (o->height == 1) return repeats ? rows : 1;
    if (repeats || o->pitch != (uint64_t)o->width * o->channels * nk_item(o)) return 1;
    return nk_min((int32_t)(o->ring - (uint32_t)y % o->ring), rows);
}

/* Call `run` for every run of output rows [row0, row1) of a kernel whose operands 0 and 1 broadcast
 * to operand 2. */
static inline void nk_walk2(const nk_call *call, nk_run2 run) {
    const nk_operand *a = &call->operands[0], *b = &call->operands[1], *out = &call->operands[2];
    const int whole = nk_row_is_run(a, out) && nk_row_is_run(b, out) && nk_row_is_run(out, out);
    const uint32_t step_a = a->channels > 1 || (whole && a->width > 1) ? nk_item(a) : 0,
                   move_a = a->width > 1 ? a->pixel : 0;
    const uint32_t step_b = b->channels > 1 || (whole && b->width > 1) ? nk_item(b) : 0,
                   move_b = b->width > 1 ? b->pixel : 0;
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0, rows = 1; y < call->row1; y += rows) {
            const uint8_t *from_a = nk_broadcast_row(a, image, y),
                          *from_b = nk_broadcast_row(b, image, y);
            uint8_t *to = nk_row(out, image, y);
            if (whole) {
                rows = nk_rows_in_run(out, y, call->row1 - y);
                rows = nk_min(nk_rows_in_run(a, y, rows), nk_rows_in_run(b, y, rows));
                run(call, from_a, step_a, from_b, step_b, to,
                    (uint32_t)rows * out->width * out->channels);
                continue;
            }
            for (uint32_t x = 0; x < out->width; ++x) {
                if (nk_stopped(call)) return;
                run(call, from_a, step_a, from_b, step_b, to, out->channels);
                from_a += move_a;
                from_b += move_b;
                to += out->pixel;
            }
        }
    }
}

/* Check of the operands of a kernel that uses nk_walk2, for elements of 8 or 16 bits. */
static inline int32_t nk_check_walk2_any(nk_call *call) {
    const nk_operand *a = &call->operands[0], *b = &call->operands[1], *out = &call->operands[2];
    if (!nk_same_type(a, out) || !nk_same_type(b, out))
        return nk_refuse(call, "inputs and output must be of one type of 8 or 16 bits");
    if (!nk_broadcasts(a, out) || !nk_broadcasts(b, out))
        return nk_refuse(call, "an input does not broadcast to the output");
    if (!nk_inside(a) || !nk_inside(b) || !nk_inside(out))
        return nk_refuse(call, "an operand leaves its region");
    return 0;
}

/* The same for kernels that only know bytes. */
static inline int32_t nk_check_walk2(nk_call *call) {
    if (!nk_is_byte(&call->operands[2]))
        return nk_refuse(call, "inputs and output must be of one 8-bit type");
    return nk_check_walk2_any(call);
}

/* `count` elements of a kernel with one input of the output's shape. */
typedef void (*nk_run1)(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count);

static inline void nk_walk1(const nk_call *call, const nk_operand *in, const nk_operand *out,
                            nk_run1 run) {
    const int whole = nk_row_is_run(in, out) && nk_row_is_run(out, out);
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0, rows = 1; y < call->row1; y += rows) {
            const uint8_t *from = nk_row(in, image, y);
            uint8_t *to = nk_row(out, image, y);
            if (whole) {
                rows = nk_rows_in_run(in, y, nk_rows_in_run(out, y, call->row1 - y));
                run(call, from, to, (uint32_t)rows * out->width * out->channels);
                continue;
            }
            for (uint32_t x = 0; x < out->width; ++x) {
                if (nk_stopped(call)) return;
                run(call, from + (size_t)x * in->pixel, to + (size_t)x * out->pixel, out->channels);
            }
        }
    }
}

#endif
