/* Windows of four channels that each have their own: the inputs and weights of a tap are two words
 * of pairs. */
#ifndef NK_LANE_SUMS_DSP_H
#define NK_LANE_SUMS_DSP_H

#include "stage_dsp.h"

#if NK_HAS_DSP

/* Four numbers of one tap: of channels 0 and 2, 1 and 3. */
typedef struct {
    int16x2_t even, odd;
} nk_lane_pairs;

/* Pixels of one output row under windows of 3 x 3 taps, in twos; the loop advances rows and `to`,
 * and counts down. The words of assembly count on the order. */
typedef struct {
    const nk_lane_pairs *rows[3]; /* of the first pixel's window */
    uint32_t step;                /* bytes from a pair of pixels to the next in a row */
    const int32_t *biases;        /* of four channels, then the weights of nine taps */
    const nk_channel_scale *scales;
    int8x4_t low, high;
    uint8_t *to;
    uint32_t pitch; /* bytes between output pixels */
    uint32_t twos;  /* at least one */
} nk_lane_row;

void nk_lane_row3x3(nk_lane_row *row);     /* the second pixel's window is a column further on */
void nk_lane_row3x3_by2(nk_lane_row *row); /* two columns */

#endif

#endif
