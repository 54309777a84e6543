/* The walk of dense layers over output pixels, two at a time: weights that are read for one serve
 * the other. */
#ifndef NK_PIXEL_PAIRS_H
#define NK_PIXEL_PAIRS_H

#include "nk_window.h"

#if NK_HAS_DSP

/* Output pixels that are made together; they may be of two rows. */
typedef struct {
    uint32_t image, count; /* one or two */
    int32_t y[2], x[2];
    uint8_t *to[2];
} nk_pixels;

typedef void (*nk_pixels_made)(const void *loop, const nk_pixels *pixels);

/* pixel_pairs.c: hand `make` all output pixels of the call's rows, until its time is over. */
void nk_pixel_pairs(const nk_call *call, const nk_operand *out, nk_pixels_made make,
                    const void *loop);

#endif

#endif
