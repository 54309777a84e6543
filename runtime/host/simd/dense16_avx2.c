/* Dense products of 16-bit activations: the panel and products of dense_avx2.c, whose 32-bit sums
 * are gathered in 64 bits every NK_WIDE_RUN inputs, before they could overflow. */
#include "loops.h"

#if NK_HAS_X86

#include "dense16.h"

#include "products_avx2.h"
#include "wide_avx2.h"

#define CHUNK 24                     /* pixels whose accumulators wait for the stage: 3 KiB */
#define ROOM (NK_WIDE_RUN / NK_PACK) /* blocks of inputs rearranged at a time */

static const __m256i nothing[2]; /* to start with */

/* 16 channels of a block. */
typedef struct {
    const nk_dense *d;
    const nk_block *b;
    const nk_wide_stage *stage;
    const nk_wide_lanes *lanes;
    const int8_t *weights;
    uint32_t channel, channels;
} slab;

/* Adds one part of the inputs to the sums of `count` pixels. */
static void add_part(const slab *l, const uint8_t *panel, uint32_t count, uint32_t first,
                     uint32_t skip, const part *t, const int8_t *expanded, int64_t *sums) {
    int32_t acc[CHUNK * LANES] __attribute__((aligned(32)));
    const nk_block *b = l->b;
    tiles(t, panel + first * b->outer_step + (size_t)skip * NK_PACK * NK_ITEM, b->step, count,
          expanded, nothing, acc);
    for (uint32_t i = 0; i < count * LANES; i += 4) {
        const __m128i four = _mm_load_si128((const __m128i *)(const void *)(acc + i));
        __m256i *to = (__m256i *)(void *)(sums + i);
        _mm256_store_si256(to,
                           _mm256_add_epi64(_mm256_load_si256(to), _mm256_cvtepi32_epi64(four)));
    }
}

/* Pixels of a block whose inputs are several parts. */
static void long_pixels(const slab *l, const uint8_t *panel, uint32_t count, const int8_t *expanded,
                        uint8_t *to) {
    int64_t sums[CHUNK * LANES] __attribute__((aligned(32)));
    int8_t own[ROOM * NK_PACK * LANES] __attribute__((aligned(32)));
    const nk_block *b = l->b;
    const uint32_t length = b->length < ROOM ? b->length : ROOM, outer = ROOM / length;
    memset(sums, 0, (size_t)count * LANES * sizeof *sums);
    for (uint32_t o = 0; o < b->outer; o += outer) {
        for (uint32_t skip = 0; skip < b->length; skip += length) {
            const part t = {b->outer - o < outer ? b->outer - o : outer,
                            b->length - skip < length ? b->length - skip : length, b->outer_step};
            if (!expanded) expand_part(l->d, b, l->weights, l->channels > 8, o, skip, &t, own);
            add_part(l, panel, count, o, skip, &t, expanded ? expanded : own, sums);
            if (expanded) expanded += (size_t)t.outer * t.length * NK_PACK * LANES;
        }
    }
    for (uint32_t i = 0; i < count; ++i, to += l->d->out->pixel)
        nk_wide_finish(l->stage, l->lanes, sums + i * LANES, l->channels,
                       l->d->first_out + l->channel, to);
}

/* Pixels of a block whose inputs are one part, rearranged. */
static void short_pixels(const slab *l, const uint8_t *panel, uint32_t count,
                         const int8_t *expanded, uint8_t *to) {
    int32_t acc[CHUNK * LANES] __attribute__((aligned(32)));
    const part all = {l->b->outer, l->b->length, l->b->outer_step};
    tiles(&all, panel, l->b->step, count, expanded, nothing, acc);
    for (uint32_t i = 0; i < count; ++i, to += l->d->out->pixel) {
        const __m256i *sums = (const __m256i *)(const void *)(acc + i * LANES);
        nk_wide_finish32(l->stage, l->lanes, _mm256_load_si256(sums), _mm256_load_si256(sums + 1),
                         l->channels, l->d->first_out + l->channel, to);
    }
}

#define EXPANDED 32768 /* bytes of rearranged weights held for a block; more are made again */

/* All parts of the weights, in the order in which `long_pixels` takes them. */
static void expand_all(const slab *l, int8_t *to) {
    const nk_block *b = l->b;
    const uint32_t length = b->length < ROOM ? b->length : ROOM, outer = ROOM / length;
    for (uint32_t o = 0; o < b->outer; o += outer) {
        for (uint32_t skip = 0; skip < b->length; skip += length) {
            const part t = {b->outer - o < outer ? b->outer - o : outer,
                            b->length - skip < length ? b->length - skip : length, b->outer_step};
            expand_part(l->d, b, l->weights, l->channels > 8, o, skip, &t, to);
            to += (size_t)t.outer * t.length * NK_PACK * LANES;
        }
    }
}

static void product(const nk_dense *d, const nk_block *b, const void *state) {
    int8_t expanded[EXPANDED] __attribute__((aligned(32)));
    const size_t blocks = (size_t)b->outer * b->length;
    const int one = blocks <= ROOM, fits = blocks * NK_PACK * LANES <= EXPANDED;
    const nk_operand *out = d->out;
    for (uint32_t channel = 0; channel < d->outputs; channel += LANES) {
        const uint32_t left = d->outputs - channel, channels = left < LANES ? left : LANES;
        const nk_wide_lanes lanes =
            nk_wide_lanes_of(state, d->first_out + channel, channels, NK_PACK * blocks);
        const slab l = {
            d,       b,       state, &lanes, d->weights + channel / NK_PACK * d->group_bytes,
            channel, channels};
        if (fits) expand_all(&l, expanded);
        for (uint32_t r = 0; r < b->rows; ++r) {
            uint8_t *to = nk_row(out, b->image, b->y + (int32_t)r) + (size_t)b->x * out->pixel +
                          2 * (size_t)(d->first_out + channel);
            for (uint32_t x = 0; x < b->columns; x += CHUNK) {
                const uint8_t *panel = b->panel + r * b->row_step + x * b->step;
                const uint32_t count = b->columns - x < CHUNK ? b->columns - x : CHUNK;
                uint8_t *here = to + (size_t)x * out->pixel;
                if (one) short_pixels(&l, panel, count, expanded, here);
                else long_pixels(&l, panel, count, fits ? expanded : NULL, here);
            }
        }
    }
}

int nk_conv2d16_avx2(const nk_call *call, const nk_wide_stage *stage) {
    return nk_conv2d16_by(call, stage, product);
}

int nk_fully_connected16_avx2(const nk_call *call, const nk_wide_stage *stage) {
    return nk_fully_connected16_by(call, stage, product);
}

#endif
