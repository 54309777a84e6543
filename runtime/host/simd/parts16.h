/* Dense products of 16-bit activations on packed weights as they lie, for instruction sets whose
 * multiply-adds leave four partial sums of 32 bits per output.
 *
 * A block of 8 inputs adds two products to a partial sum, so that 126 blocks leave room to add two
 * of them in 32 bits. Up to 63 blocks all four are added there; above, the last addition is one of
 * 64 bits, and longer inputs are cut into parts of 126.
 *
 * A loop file defines NK_SLAB, the outputs at a time, and NK_TILE, the pixels; nk_constants with
 * nk_constants_of, nk_finish32 and nk_finish64; includes this; provides nk_tile16 and calls
 * nk_conv2d16_by and nk_fully_connected16_by with nk_product16. */
#ifndef NK_PARTS16_H
#define NK_PARTS16_H

#include "dense16.h"

#if NK_HAS_SIMD

#define NK_CHUNK 24 /* pixels whose sums wait for the stage: at most 3 KiB of 64 bits */
#define NK_SHORT (NK_WIDE_RUN / NK_PACK)
#define NK_PART (2 * NK_SHORT)

/* Inputs of a part: `outer` runs of `length` blocks. */
typedef struct {
    const int8_t *weights;
    size_t group; /* bytes from 8 outputs to the next */
    size_t step, outer_step, weights_step;
    uint32_t outer, length;
} nk_part16;

/* NK_SLAB outputs of a block. */
typedef struct {
    const nk_dense *d;
    const nk_block *b;
    const int8_t *weights;
    nk_constants constants;
    uint32_t groups; /* of 8 outputs */
} nk_slab16;

/* `count` <= NK_TILE pixels times `groups` groups. `to` holds NK_SLAB sums a pixel: of 32 bits, or
 * of 64 to which these are added. */
static void nk_tile16(const nk_part16 *t, const uint8_t *panel, uint32_t count, uint32_t groups,
                      void *to, int wide);

/* `count` pixels of a panel row, in tiles of nearly equal size. */
static void nk_tiles16(const nk_part16 *t, const uint8_t *panel, uint32_t count, uint32_t groups,
                       uint8_t *to, int wide) {
    const size_t row = NK_SLAB * (wide ? sizeof(int64_t) : sizeof(int32_t));
    for (uint32_t parts = nk_blocks(count, NK_TILE); parts; --parts) {
        const uint32_t size = nk_blocks(count, parts);
        nk_tile16(t, panel, size, groups, to, wide);
        panel += size * t->step, to += size * row, count -= size;
    }
}

static void nk_short_pixels(const nk_slab16 *l, const uint8_t *panel, uint32_t count, uint8_t *to) {
    const nk_block *b = l->b;
    int32_t acc[NK_CHUNK * NK_SLAB] __attribute__((aligned(64)));
    const nk_part16 all = {l->weights,
                           l->d->group_bytes,
                           b->step,
                           b->outer_step,
                           (size_t)b->length * NK_PACK * NK_PACK,
                           b->outer,
                           b->length};
    nk_tiles16(&all, panel, count, l->groups, (uint8_t *)acc, 0);
    for (uint32_t i = 0; i < count; ++i, to += l->d->out->pixel)
        nk_finish32(&l->constants, acc + i * NK_SLAB, to);
}

static void nk_long_pixels(const nk_slab16 *l, const uint8_t *panel, uint32_t count, uint8_t *to) {
    const nk_block *b = l->b;
    int64_t sums[NK_CHUNK * NK_SLAB] __attribute__((aligned(64)));
    const uint32_t length = b->length < NK_PART ? b->length : NK_PART, outer = NK_PART / length;
    const size_t weights_step = (size_t)b->length * NK_PACK * NK_PACK;
    memset(sums, 0, (size_t)count * NK_SLAB * sizeof *sums);
    for (uint32_t o = 0; o < b->outer; o += outer) {
        for (uint32_t skip = 0; skip < b->length; skip += length) {
            const nk_part16 some = {l->weights + o * weights_step +
                                        (size_t)skip * NK_PACK * NK_PACK,
                                    l->d->group_bytes,
                                    b->step,
                                    b->outer_step,
                                    weights_step,
                                    b->outer - o < outer ? b->outer - o : outer,
                                    b->length - skip < length ? b->length - skip : length};
            nk_tiles16(&some, panel + o * b->outer_step + (size_t)skip * NK_PACK * NK_ITEM, count,
                       l->groups, (uint8_t *)sums, 1);
        }
    }
    for (uint32_t i = 0; i < count; ++i, to += l->d->out->pixel)
        nk_finish64(&l->constants, sums + i * NK_SLAB, to);
}

static void nk_product16(const nk_dense *d, const nk_block *b, const void *state) {
    const size_t blocks = (size_t)b->outer * b->length;
    const nk_operand *out = d->out;
    nk_slab16 l;
    l.d = d, l.b = b;
    for (uint32_t channel = 0; channel < d->outputs; channel += NK_SLAB) {
        const uint32_t left = d->outputs - channel, channels = left < NK_SLAB ? left : NK_SLAB;
        l.weights = d->weights + channel / NK_PACK * d->group_bytes;
        l.groups = nk_blocks(channels, NK_PACK);
        nk_constants_of(&l.constants, state, d->first_out + channel, channels, NK_PACK * blocks);
        for (uint32_t r = 0; r < b->rows; ++r) {
            uint8_t *to = nk_row(out, b->image, b->y + (int32_t)r) + (size_t)b->x * out->pixel +
                          2 * (size_t)(d->first_out + channel);
            for (uint32_t x = 0; x < b->columns; x += NK_CHUNK) {
                const uint8_t *panel = b->panel + r * b->row_step + x * b->step;
                const uint32_t count = b->columns - x < NK_CHUNK ? b->columns - x : NK_CHUNK;
                uint8_t *here = to + (size_t)x * out->pixel;
                if (blocks <= NK_SHORT) nk_short_pixels(&l, panel, count, here);
                else nk_long_pixels(&l, panel, count, here);
            }
        }
    }
}

#endif
#endif
