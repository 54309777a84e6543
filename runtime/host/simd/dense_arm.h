/* Dense products on Arm, the same for every set of instructions: panels of signed bytes meet the
 * packed weights in place, [8 outputs][8 inputs] blocks, and 8 channels of a few pixels leave
 * through the stage without touching memory.
 *
 * UINT8 inputs are stored 128 lower, filling included, and 128 times the sum of the weights is
 * added to the bias; sums wrap, so this changes nothing. A loop file provides NK_TILE_MOST and
 * nk_tile(), includes this file and calls nk_dense_arm.
 */
#ifndef NK_DENSE_ARM_H
#define NK_DENSE_ARM_H

#define NK_ITEM 1
#include "dense.h"
#include "loops.h"
#include "stage_neon.h"
#include "thin.h"

/* 8 output channels of a block. */
typedef struct {
    const nk_dense *d;
    const nk_block *b;
    const int8_t *weights;
    nk_leave leave;
    int32x4_t start[2]; /* of the accumulators */
    int paired;         /* what a loop file found out about the weights */
} nk_slab;

static void nk_fill_absent(const nk_dense *d, uint8_t *to, uint32_t count) {
    const uint8_t toggle = d->flip ^ 0x80;
    for (uint32_t i = 0; i < count; ++i, to += d->depth) {
        memset(to, (uint8_t)d->p->input_zero ^ toggle, d->inputs);
        memset(to + d->inputs, toggle, d->depth - d->inputs);
    }
}

/* One pixel, or several that lie side by side on both sides. */
static inline void nk_fill_one(uint8_t *to, const uint8_t *from, size_t bytes, uint8_t toggle) {
    const uint8x16_t by = vdupq_n_u8(toggle);
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16) vst1q_u8(to + at, veorq_u8(vld1q_u8(from + at), by));
    if (at + 8 <= bytes) {
        vst1_u8(to + at, veor_u8(vld1_u8(from + at), vget_low_u8(by)));
        at += 8;
    }
    for (; at < bytes; ++at) to[at] = from[at] ^ toggle;
}

static void nk_fill_pixels(const nk_dense *d, uint8_t *to, const uint8_t *from, size_t stride,
                           uint32_t count) {
    const uint8_t toggle = d->flip ^ 0x80;
    if (stride == d->depth && d->inputs == d->depth) {
        nk_fill_one(to, from, (size_t)count * d->depth, toggle);
        return;
    }
    for (uint32_t i = 0; i < count; ++i, to += d->depth, from += stride) {
        nk_fill_one(to, from, d->inputs, toggle);
        for (uint32_t at = d->inputs; at < d->depth; ++at) to[at] = toggle;
    }
}

/* The next 8 inputs of a pixel, twice; from any address, which the intrinsic for LD1R does not
 * allow. */
NK_INLINE int8x16_t nk_twice(const uint8_t *at) {
    typedef int64_t unaligned __attribute__((aligned(1), may_alias));
    return vreinterpretq_s8_s64(vdupq_n_s64(*(const unaligned *)(const void *)at));
}

/* Sums of the weights of 8 outputs over `blocks` blocks. */
static inline void nk_weight_sums(const int8_t *weights, uint32_t blocks, int32x4_t sums[2]) {
    int32x4_t pairs[4];
    for (int j = 0; j < 4; ++j) pairs[j] = vdupq_n_s32(0);
    for (uint32_t i = 0; i < blocks; ++i)
        for (int j = 0; j < 4; ++j, weights += 16)
            pairs[j] = vpadalq_s16(pairs[j], vpaddlq_s8(vld1q_s8(weights)));
    sums[0] = vpaddq_s32(pairs[0], pairs[1]);
    sums[1] = vpaddq_s32(pairs[2], pairs[3]);
}

/* Two pixels of a slab that is not 8 bytes wide, or has a table to pass. */
static __attribute__((noinline)) void nk_store_slowly(const nk_slab *l, uint8x16_t bytes,
                                                      uint8_t *to, int both) {
    const size_t pixel = l->d->out->pixel;
    const uint32_t count = l->leave.count;
    uint8_t rest[16];
    if (l->leave.stage->lut) bytes = nk_look_up16(l->leave.stage->lut, bytes);
    vst1q_u8(rest, bytes);
    memcpy(to, rest, count);
    if (both) memcpy(to + pixel, rest + NK_PACK, count);
}

/* Accumulators of P pixels to bytes; channels 0-3 and 4-7 of a pixel are a pair of vectors. */
NK_INLINE void nk_leave_tile(const nk_slab *l, int32x4_t (*sum)[2], uint8_t *to, const int P) {
    const nk_leave *k = &l->leave;
    const size_t pixel = l->d->out->pixel;
    const int whole = k->count == NK_PACK && !k->stage->lut;
    if (k->form == NK_PLAIN) {
        uint8x16_t bytes[4]; /* stored at the end: a store to bytes may change any constant */
#pragma GCC unroll 8
        for (int p = 0; p < P; p += 2) {
            const int q = p + 1 < P ? p + 1 : p;
            bytes[p / 2] = nk_bytes16(&k->clamps[1], nk_rescale4(&k->lanes[0], sum[p][0], 1),
                                      nk_rescale4(&k->lanes[1], sum[p][1], 1),
                                      nk_rescale4(&k->lanes[0], sum[q][0], 1),
                                      nk_rescale4(&k->lanes[1], sum[q][1], 1), 1, 0);
        }
#pragma GCC unroll 8
        for (int p = 0; p < P && whole; p += 2, to += 2 * pixel) {
            vst1_u8(to, vget_low_u8(bytes[p / 2]));
            if (p + 1 < P) vst1_u8(to + pixel, vget_high_u8(bytes[p / 2]));
        }
        for (int p = 0; p < P && !whole; p += 2, to += 2 * pixel)
            nk_store_slowly(l, bytes[p / 2], to, p + 1 < P);
        return;
    }
    int32_t acc[8 * NK_PACK];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
        vst1q_s32(acc + p * NK_PACK, sum[p][0]);
        vst1q_s32(acc + p * NK_PACK + 4, sum[p][1]);
    }
    for (int p = 0; p < P; ++p, to += pixel) {
        if (k->form == NK_DEFINITION) {
            nk_leave_slowly(k, acc + p * NK_PACK, k->count, to);
            continue;
        }
        int32x4_t low = vld1q_s32(acc + p * NK_PACK), high = vld1q_s32(acc + p * NK_PACK + 4);
        if (k->form == NK_EXACT) {
            low = nk_exact4(&k->lanes[0], low), high = nk_exact4(&k->lanes[1], high);
        } else {
            low = nk_rescale4(&k->lanes[0], low, 0), high = nk_rescale4(&k->lanes[1], high, 0);
        }
        const uint8x16_t bytes = nk_bytes16(&k->clamps[0], low, high, low, high, 0, 0);
        if (whole) vst1_u8(to, vget_low_u8(bytes));
        else nk_store_slowly(l, bytes, to, 0);
    }
}

/* Products of `count` <= NK_TILE_MOST pixels, from `panel` on, to `to`. */
static void nk_tile(const nk_slab *l, const uint8_t *panel, uint32_t count, uint8_t *to);
/* Of a block that is one pixel. */
NK_INLINE void nk_lone_tile(const nk_slab *l, const uint8_t *panel, uint8_t *to);
/* Once per slab. */
static void nk_look_at_weights(nk_slab *l, uint32_t blocks);

static void nk_slab_rows(const nk_slab *l) {
    const nk_block *b = l->b;
    const nk_operand *out = l->d->out;
    /* Tiles of nearly equal size: 9 pixels are 5 and 4 rather than 8 and 1. */
    const uint32_t parts = nk_blocks(b->columns, NK_TILE_MOST);
    for (uint32_t r = 0; r < b->rows; ++r) {
        uint8_t *row =
            nk_row(out, b->image, b->y + (int32_t)r) + (size_t)b->x * out->pixel + l->leave.channel;
        const uint8_t *panel = b->panel + r * b->row_step;
        for (uint32_t x = 0, left = parts; left; --left) {
            const uint32_t count = nk_blocks(b->columns - x, left);
            nk_tile(l, panel + x * b->step, count, row + (size_t)x * out->pixel);
            x += count;
        }
    }
}

NK_INLINE void nk_slab_start(nk_slab *l, const nk_dense *d, const nk_block *b) {
    l->d = d, l->b = b;
    nk_leave_start(&l->leave, d->stage, d->out->dtype == NEUTRON_DTYPE_INT8);
}

/* Go to 8 outputs from `channel` on. */
NK_INLINE void nk_slab_at(nk_slab *l, uint32_t channel) {
    const nk_dense *d = l->d;
    const uint32_t count = d->outputs - channel < NK_PACK ? d->outputs - channel : NK_PACK;
    l->weights = d->weights + channel / NK_PACK * d->group_bytes;
    nk_leave_by(&l->leave, d->first_out + channel, count, 2);
    l->start[0] = l->leave.bias[0], l->start[1] = l->leave.bias[1];
    if (d->flip) return;
    int32x4_t sums[2];
    nk_weight_sums(l->weights, l->b->outer * l->b->length, sums);
    for (int h = 0; h < 2; ++h) l->start[h] = nk_wrap_add4(l->start[h], vshlq_n_s32(sums[h], 7));
}

/* A block of one pixel, as fully connected layers have it. */
static __attribute__((noinline)) void nk_product_lone(const nk_dense *d, const nk_block *b) {
    uint8_t *to = nk_row(d->out, b->image, b->y) + (size_t)b->x * d->out->pixel + d->first_out;
    nk_slab l;
    nk_slab_start(&l, d, b);
    for (uint32_t channel = 0; channel < d->outputs; channel += NK_PACK) {
        nk_slab_at(&l, channel);
        nk_lone_tile(&l, b->panel, to + channel);
    }
}

static void nk_product_arm(const nk_dense *d, const nk_block *b, const void *state) {
    nk_slab l;
    (void)state;
    if (b->rows * b->columns == 1) {
        nk_product_lone(d, b);
        return;
    }
    nk_slab_start(&l, d, b);
    for (uint32_t channel = 0; channel < d->outputs; channel += NK_PACK) {
        nk_slab_at(&l, channel);
        nk_look_at_weights(&l, b->outer * b->length);
        nk_slab_rows(&l);
    }
}

static int nk_dense_slice(const nk_call *call, const nk_dense *d, int thin) {
    int8_t weights[NK_THIN_BYTES] __attribute__((aligned(64)));
    const nk_dense used = thin ? nk_thin(d, weights, 1) : *d;
    for (uint32_t image = 0; image < d->out->batch; ++image)
        if (!nk_dense_run(&used, image, call->row0, call->row1, nk_product_arm, NULL)) return 0;
    return 1;
}

/* All of a call; `p` describes the window. */
static int nk_dense_arm(const nk_call *call, const nk_operand *weights, const nk_conv2d_params *p,
                        const nk_operand *in, const nk_operand *out, const nk_stage *stage) {
    const uint32_t groups = (uint32_t)p->groups, inputs = in->channels / groups,
                   outputs = out->channels / groups;
    if (call->units != NK_PACK || call->length != NK_PACK || p->weights_zero != 0) return 0;
    if (inputs == 0 || out->width == 0 || !nk_zero_is_byte(in, p->input_zero)) return 0;
    nk_dense d = {.call = call, .in = in, .out = out, .stage = stage, .p = p, .inputs = inputs};
    d.depth = nk_blocks(inputs, NK_PACK) * NK_PACK;
    d.group_bytes = (size_t)p->kernel_h * (uint32_t)p->kernel_w * d.depth * NK_PACK;
    d.flip = (uint8_t)nk_flip(in);
    const int thin = nk_thin_pays(&d, NK_PACK);
    const uint32_t padded = nk_blocks(outputs, NK_PACK) * NK_PACK;
    const uint32_t slice = thin ? nk_thin_slice(&d, outputs) : padded;
    for (uint32_t group = 0; group < groups; ++group) {
        for (uint32_t c = 0; c < outputs; c += slice) {
            d.first_in = group * inputs;
            d.first_out = group * outputs + c;
            d.outputs = outputs - c < slice ? outputs - c : slice;
            d.weights = (const int8_t *)weights->data +
                        ((size_t)group * padded + c) / NK_PACK * d.group_bytes;
            if (!nk_dense_slice(call, &d, thin)) return 0;
        }
    }
    return 1;
}

static int nk_conv2d_arm(const nk_call *call, const nk_stage *stage) {
    return nk_dense_arm(call, &call->operands[NK_CONV2D_WEIGHTS],
                        (const nk_conv2d_params *)(const void *)call->params,
                        &call->operands[NK_CONV2D_INPUT], &call->operands[NK_CONV2D_OUTPUT], stage);
}

static inline int nk_fully_connected_arm(const nk_call *call, const nk_stage *stage) {
    const nk_fully_connected_params *p =
        (const nk_fully_connected_params *)(const void *)call->params;
    const nk_conv2d_params one = nk_one_pixel(p->weights_zero);
    return nk_dense_arm(call, &call->operands[NK_FULLY_CONNECTED_WEIGHTS], &one,
                        &call->operands[NK_FULLY_CONNECTED_INPUT],
                        &call->operands[NK_FULLY_CONNECTED_OUTPUT], stage);
}

#endif
