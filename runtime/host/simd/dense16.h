/* Dense products of 16-bit activations, the same for every instruction set: panels of elements as
 * they are, taps outside the image 0, and the call cut into groups, images and blocks.
 *
 * A loop file includes this, provides a product for blocks, whose state is the stage, and calls
 * nk_conv2d16_by and nk_fully_connected16_by. */
#ifndef NK_DENSE16_H
#define NK_DENSE16_H

#define NK_ITEM 2
#include "dense.h"
#include "thin.h"
#include "wide.h"

#if NK_HAS_SIMD

static void nk_fill_absent(const nk_dense *d, uint8_t *to, uint32_t count) {
    memset(to, 0, (size_t)count * d->depth * NK_ITEM);
}

static void nk_fill_pixels(const nk_dense *d, uint8_t *to, const uint8_t *from, size_t stride,
                           uint32_t count) {
    const size_t kept = (size_t)d->inputs * NK_ITEM, pixel = (size_t)d->depth * NK_ITEM;
    if (stride == pixel && kept == pixel) {
        memcpy(to, from, pixel * count);
        return;
    }
    for (uint32_t i = 0; i < count; ++i, to += pixel, from += stride) {
        memcpy(to, from, kept);
        memset(to + kept, 0, pixel - kept);
    }
}

/* The channels of `d`, of every image. */
static int nk_dense16_slice(const nk_dense *d, const nk_wide_stage *stage, nk_product product,
                            int thin) {
    int8_t weights[NK_THIN_BYTES] __attribute__((aligned(64)));
    const nk_dense used = thin ? nk_thin(d, weights, 1) : *d;
    for (uint32_t image = 0; image < d->out->batch; ++image)
        if (!nk_dense_run(&used, image, d->call->row0, d->call->row1, product, stage)) return 0;
    return 1;
}

/* All of a call; `p` describes the window. */
static int nk_dense16(const nk_call *call, const nk_operand *weights, const nk_conv2d_params *p,
                      const nk_operand *in, const nk_operand *out, const nk_wide_stage *stage,
                      nk_product product) {
    const uint32_t groups = (uint32_t)p->groups, inputs = in->channels / groups,
                   outputs = out->channels / groups, padded = nk_blocks(outputs, NK_PACK) * NK_PACK;
    if (call->units != NK_PACK || call->length != NK_PACK || inputs == 0 || out->width == 0)
        return 0;
    nk_dense d = {.call = call, .in = in, .out = out, .p = p, .inputs = inputs};
    d.depth = nk_blocks(inputs, NK_PACK) * NK_PACK;
    d.group_bytes = (size_t)p->kernel_h * (uint32_t)p->kernel_w * d.depth * NK_PACK;
    const int thin = nk_thin_pays(&d, NK_PACK);
    const uint32_t slice = thin ? nk_thin_slice(&d, padded) : padded;
    for (uint32_t group = 0; group < groups; ++group) {
        for (uint32_t c = 0; c < outputs; c += slice) {
            d.first_in = group * inputs * NK_ITEM; /* bytes */
            d.first_out = group * outputs + c;
            d.outputs = outputs - c < slice ? outputs - c : slice;
            d.weights = (const int8_t *)weights->data +
                        ((size_t)group * padded + c) / NK_PACK * d.group_bytes;
            if (!nk_dense16_slice(&d, stage, product, thin)) return 0;
        }
    }
    return 1;
}

static int nk_conv2d16_by(const nk_call *call, const nk_wide_stage *stage, nk_product product) {
    const nk_conv2d16_params *p = (const nk_conv2d16_params *)(const void *)call->params;
    const nk_conv2d_params window = {.kernel_h = p->kernel_h,
                                     .kernel_w = p->kernel_w,
                                     .stride_h = p->stride_h,
                                     .stride_w = p->stride_w,
                                     .dilation_h = p->dilation_h,
                                     .dilation_w = p->dilation_w,
                                     .pad_top = p->pad_top,
                                     .pad_left = p->pad_left,
                                     .groups = p->groups};
    return nk_dense16(call, &call->operands[NK_CONV2D16_WEIGHTS], &window,
                      &call->operands[NK_CONV2D16_INPUT], &call->operands[NK_CONV2D16_OUTPUT],
                      stage, product);
}

static int nk_fully_connected16_by(const nk_call *call, const nk_wide_stage *stage,
                                   nk_product product) {
    const nk_conv2d_params one = nk_one_pixel(0);
    return nk_dense16(call, &call->operands[NK_FULLY_CONNECTED16_WEIGHTS], &one,
                      &call->operands[NK_FULLY_CONNECTED16_INPUT],
                      &call->operands[NK_FULLY_CONNECTED16_OUTPUT], stage, product);
}

#endif
#endif
