/* Dot products of one or two pixels with four output channels at a time. */
#ifndef NK_PRODUCTS_HELIUM_H
#define NK_PRODUCTS_HELIUM_H

#include <stdint.h>

#include "helium.h"

#if NK_HAS_HELIUM

/* Sums of four channels for two pixels. */
typedef struct {
    int32_t pixel[2][4];
} nk_four_sums;

/* What is added to the sums of fours of output channels; the loop advances weights and sums, and
 * counts down. The words of assembly count on the order. Weights are words of four inputs, those of
 * four channels beside each other, at multiples of 4. */
typedef struct {
    const uint8_t *in[2]; /* INT8, words of four */
    const int8_t *weights;
    uint32_t quads; /* words of a pixel, at least one */
    nk_four_sums *sums;
    uint32_t fours; /* at least one */
    uint32_t next;  /* bytes from the weights of four channels to the next ones */
} nk_four_products;

/* For both pixels, or for the first. */
void nk_four_products_of_two(nk_four_products *job);
void nk_four_products_of_one(nk_four_products *job);

#endif

#endif
