/* Windows of four channels that each have their own: one word of inputs and four products per tap.
 */
#ifndef NK_LANE_SUMS_DSP_H
#define NK_LANE_SUMS_DSP_H

#include "dsp.h"

#if NK_HAS_DSP

/* Weights of one tap, of channels 0 and 2, 1 and 3. */
typedef struct {
    int16x2_t even, odd;
} nk_lane_weights;

/* Rows and columns of a window, and the bytes between its columns. */
typedef struct {
    uint32_t rows, columns, step;
} nk_lane_window;

/* Add all taps to the four sums: row k of the window begins at rows[k] + offset. */
typedef void (*nk_lane_sums)(const uint8_t *const *rows, size_t offset,
                             const nk_lane_weights *weights, const nk_lane_window *window,
                             int32_t *sums);
#define NK_LANE_SUMS(name) \
    void name(const uint8_t *const *rows, size_t offset, const nk_lane_weights *weights, \
              const nk_lane_window *window, int32_t *sums)
NK_LANE_SUMS(nk_lane_sums_signed);
NK_LANE_SUMS(nk_lane_sums_unsigned);
NK_LANE_SUMS(nk_lane_sums3_signed); /* three columns */
NK_LANE_SUMS(nk_lane_sums3_unsigned);

#endif

#endif
