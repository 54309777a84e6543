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

/* Add `quads` (at least one) times their weights to the sums, for both pixels or for the first. The
 * weights are words of four, in blocks of four channels, or of eight channels of two words each;
 * there are two quads for each of the latter's blocks. Weights are at multiples of 4. */
typedef void (*nk_products)(const nk_quad *in, const int8_t *weights, uint32_t quads,
                            nk_sums *sums);
void nk_products_two_by4(const nk_quad *in, const int8_t *weights, uint32_t quads, nk_sums *sums);
void nk_products_two_by8(const nk_quad *in, const int8_t *weights, uint32_t quads, nk_sums *sums);
void nk_products_one_by4(const nk_quad *in, const int8_t *weights, uint32_t quads, nk_sums *sums);
void nk_products_one_by8(const nk_quad *in, const int8_t *weights, uint32_t quads, nk_sums *sums);

#endif

#endif
