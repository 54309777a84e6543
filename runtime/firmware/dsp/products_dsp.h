/* Dot products of one or two pixels with two output channels at a time, of inputs that were put
 * into pairs of 16-bit numbers before. */
#ifndef NK_PRODUCTS_DSP_H
#define NK_PRODUCTS_DSP_H

#include "dsp.h"

#if NK_HAS_DSP

/* Four inputs of each of two pixels. */
typedef struct {
    struct {
        int16x2_t even, odd; /* inputs 0 and 2, 1 and 3 */
    } pixel[2];
} nk_quad;

/* Sums of two channels for two pixels. */
typedef struct {
    int32_t channel[2][2];
} nk_sums;

/* Sums of pairs of output channels; the loop advances weights, biases and sums, and counts down.
 * The words of assembly count on the order. Weights are words of four, in blocks of four channels,
 * or of eight channels of two words each; there are two quads for each of the latter's blocks.
 * Weights are at multiples of 4. */
typedef struct {
    const nk_quad *in;
    const int8_t *weights;
    uint32_t quads;        /* at least one */
    const int32_t *biases; /* what the sums begin with; NULL: with what they are */
    nk_sums *sums;
    uint32_t pairs;   /* at least one */
    uint32_t next[2]; /* bytes from a pair's weights to the next one's, in turn */
} nk_products_job;

/* For both pixels, or for the first. */
typedef void (*nk_products)(nk_products_job *job);
void nk_products_two_by4(nk_products_job *job);
void nk_products_two_by8(nk_products_job *job);
void nk_products_one_by4(nk_products_job *job);
void nk_products_one_by8(nk_products_job *job);

#endif

#endif
