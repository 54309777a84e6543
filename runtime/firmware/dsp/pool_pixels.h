/* The walk of pools of bytes over output pixels. */
#ifndef NK_POOL_PIXELS_H
#define NK_POOL_PIXELS_H

#include "nk_pool.h"

#if NK_HAS_DSP

#define NK_POOL_TAPS 128 /* sums of so many bytes are 16-bit numbers */

/* Taps of an output pixel that lie inside the image, at least one: rows of so many pixels. */
typedef struct {
    const nk_operand *in;
    uint32_t image, count;
    nk_span rows, columns;
} nk_pool_window;

/* The first byte of a row of the window. */
static inline const uint8_t *nk_pool_row(const nk_pool_window *w, int32_t y) {
    return nk_row(w->in, w->image, y) + (size_t)w->columns.first * w->in->pixel;
}

/* The mean with halves away from zero. */
static inline int32_t nk_pool_mean(int32_t sum, uint32_t taps) {
    const int32_t count = (int32_t)taps;
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* Make all channels of one output pixel. */
typedef void (*nk_pool_pixel)(const nk_stage *stage, const nk_pool_window *window, uint8_t *to);

/* pool_pixels.c: all pixels of the call's rows; 0 where elements are not bytes, windows too large
 * or without a tap inside the image. */
int nk_pool_pixels(const nk_call *call, const nk_stage *stage, nk_pool_pixel make);
/* Whether clamp and table of the call change nothing. */
bool nk_pool_passes(const nk_stage *stage, int32_t flip);

#endif

#endif
