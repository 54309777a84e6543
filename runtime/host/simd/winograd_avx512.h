/* Convolutions of 3 x 3 with a quarter of the products: Winograd's F(4 x 4, 3 x 3), in integers and
 * exact. Four by four outputs come from six by six inputs as A' [(G w G') * (B' x B)] A, where * is
 * taken element by element and summed over the input channels (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks", 2015).
 *
 * Why it is exact. G has fractions; 24 G has none. Its last row is taken 12 times, not 24, and the
 * other half is made up for behind the products. B' grows a byte to 100 * 255 at most and
 * 24 G a weight to 144 * 128: both fit INT16. Everything behind that is added and multiplied modulo
 * 2^32, so that 576 times the accumulator comes out whatever happened on the way, if only that fits
 * INT32. Where the weights are too large for that, the inverse of 9 modulo 2^32 makes it 64 times,
 * which fits where the accumulator is below 2^25. The requantize stage's float form multiplies by a
 * 576th or a 64th of its factor, rounded once, which is all that its proof asks for; its integer
 * form divides first, by the same inverse and a shift.
 *
 * Products of INT16 take twice as long as those of bytes, so that half of the time is left, and the
 * additions on both sides are few where there are channels enough. */
#ifndef NK_WINOGRAD_AVX512_H
#define NK_WINOGRAD_AVX512_H

#include "winograd_tiles_avx512.h"

#if NK_HAS_X86

#define NK_WINOGRAD_INPUTS 128 /* more would take more stack: nk_winograd_work */
/* Transformed weights that are kept for one slice of a call: 64 channels to 64. */
#define NK_WINOGRAD_MOST 294912
/* Inputs of a row of tiles, transformed by columns; wider images are cut. */
#define NK_WINOGRAD_ROW 32768

/* 1 when this takes less time than products of bytes, for `rows` rows: with 16 channels a tile
 * takes as long as 10 pixels do, with more it takes less. */
static inline int nk_winograd_pays(const nk_dense *d, uint32_t rows) {
    const nk_conv2d_params *p = d->p;
    const uint64_t tiles =
        (uint64_t)nk_blocks(rows, NK_WINOGRAD_SIDE) * nk_blocks(d->out->width, NK_WINOGRAD_SIDE);
    return p->kernel_h == 3 && p->kernel_w == 3 && p->stride_h == 1 && p->stride_w == 1 &&
           p->dilation_h == 1 && p->dilation_w == 1 && d->inputs % NK_WINOGRAD_CHUNK == 0 &&
           d->inputs <= NK_WINOGRAD_INPUTS && tiles > 1 &&
           tiles * 10 <= (uint64_t)rows * d->out->width;
}

/* Output channels at a time, a multiple of 16 that fits; 0: none. */
static inline uint32_t nk_winograd_slice(const nk_dense *d, uint32_t outputs) {
    const uint32_t fit = (uint32_t)(NK_WINOGRAD_MOST / nk_winograd_weights_bytes(d)) * 16;
    return nk_least(fit, outputs / 16 * 16);
}

/* A call's outputs, tile by tile. */
typedef struct {
    const nk_dense *d;
    const nk_clamps *clamps;
    const uint8_t *made; /* an nk_winograd for every 16 outputs */
    uint32_t tiles;      /* at hand, transformed */
    uint32_t turn;       /* which of the two below is filled; the other one is finished */
    nk_winograd_waiting waiting[2];
    nk_winograd_place places[NK_WINOGRAD_TILES];
    int16_t inputs[36 * NK_WINOGRAD_TILES * NK_WINOGRAD_INPUTS] __attribute__((aligned(64)));
} nk_winograd_work;

/* Products of the tiles at hand. */
static void nk_winograd_multiply(nk_winograd_work *work) {
    const nk_dense *d = work->d;
    for (uint32_t c = 0; c < d->outputs; c += 16, work->turn ^= 1) {
        nk_winograd_waiting *q = &work->waiting[work->turn], *other = &work->waiting[!work->turn];
        q->w = (const nk_winograd *)(const void *)(work->made + c / 16 * nk_winograd_bytes(d));
        q->tiles = work->tiles, q->channel = c, q->done = 0;
        memcpy(q->places, work->places, sizeof q->places);
        nk_winograd_sums_of(work->tiles, other)(d, work->clamps, work->inputs, q, other);
    }
    work->tiles = 0;
}

/* What is left at the end. */
static void nk_winograd_flush(nk_winograd_work *work) {
    if (work->tiles) nk_winograd_multiply(work);
    nk_winograd_waiting *last = &work->waiting[!work->turn];
    while (last->done < last->tiles) nk_winograd_finish(work->d, work->clamps, last);
}

/* Tiles of output rows [y, row1), four at most, and columns from x on; B' of their inputs goes to
 * `made`. */
static void nk_winograd_row(nk_winograd_work *work, uint32_t image, int32_t y, int32_t row1,
                            int32_t x, int32_t columns, int16_t *made) {
    enum { SIDE = NK_WINOGRAD_SIDE, HALO = NK_WINOGRAD_SPAN - NK_WINOGRAD_SIDE };
    const nk_dense *d = work->d;
    const int32_t rows = nk_min(SIDE, row1 - y), top = y - d->p->pad_top;
    const uint32_t filled = nk_blocks((uint32_t)columns, SIDE) * SIDE + HALO;
    uint8_t absent[NK_WINOGRAD_INPUTS];
    memset(absent, (uint8_t)d->p->input_zero, d->inputs);
    const nk_columns c = nk_columns_of(d, x - d->p->pad_left, 1, filled);
    const nk_winograd_strip strip =
        nk_winograd_strip_of(d, image, top, top + rows + HALO, &c, absent);
    if (d->flip) nk_winograd_down(d, &strip, made, 1);
    else nk_winograd_down(d, &strip, made, 0);
    for (int32_t at = 0; at < columns; at += SIDE) {
        const uint32_t t = work->tiles++;
        work->places[t] = (nk_winograd_place){image, y, x + at, rows, nk_min(SIDE, columns - at)};
        nk_winograd_across(d->inputs / NK_WINOGRAD_CHUNK, made + (size_t)at * 32, filled,
                           work->inputs + (size_t)t * 6 * NK_WINOGRAD_CHUNK);
        if (work->tiles == NK_WINOGRAD_TILES) nk_winograd_multiply(work);
    }
}

/* All of a call's rows; `weights` has an nk_winograd for every 16 outputs. */
static void nk_winograd_run(const nk_dense *d, const uint8_t *weights, const nk_clamps *clamps) {
    enum { SIDE = NK_WINOGRAD_SIDE, HALO = NK_WINOGRAD_SPAN - NK_WINOGRAD_SIDE };
    int16_t made[NK_WINOGRAD_ROW / 2] __attribute__((aligned(64)));
    nk_winograd_work work;
    work.d = d, work.clamps = clamps, work.made = weights;
    work.tiles = work.turn = work.waiting[1].tiles = work.waiting[1].done = 0;
    const int32_t width = (int32_t)d->out->width, row1 = d->call->row1,
                  most = (NK_WINOGRAD_ROW / 12 / (int32_t)d->inputs - HALO) / SIDE * SIDE;
    for (uint32_t image = 0; image < d->out->batch; ++image)
        for (int32_t y = d->call->row0; y < row1; y += SIDE)
            for (int32_t x = 0; x < width; x += most) {
                if (nk_stopped(d->call)) return;
                nk_winograd_row(&work, image, y, row1, x, nk_min(most, width - x), made);
            }
    nk_winograd_flush(&work);
}

#endif
#endif
