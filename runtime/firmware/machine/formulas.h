/* The cost formulas, one file each, and the saturating arithmetic that keeps them total on any
 * geometry. */
#ifndef NM_FORMULAS_H
#define NM_FORMULAS_H

#include "machine.h"

/* In images that are built for size each file has one copy of it: inlined it took two kibibytes. */
#ifdef __OPTIMIZE_SIZE__
#define NM_ONCE __attribute__((noinline, unused))
#else
#define NM_ONCE inline
#endif
static NM_ONCE uint64_t nm_mul(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
static inline uint64_t nm_add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
static inline uint64_t nm_ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
static inline uint64_t nm_at_least_one(uint32_t value) { return value ? value : 1; }

static inline uint64_t nm_larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Moving `bytes` that are stored in `stored` at `rate` per stored byte: decoding keeps pace or is
 * what takes long. 0 stored: plain bytes. */
static NM_ONCE uint64_t nm_moved(const nm_target *target, uint64_t rate, uint64_t bytes,
                                 uint64_t stored) {
    if (stored == 0) return nm_mul(rate, bytes);
    return nm_larger(nm_mul(rate, stored), nm_mul(target->cost.decode_byte, bytes));
}

/* Loading weights into the array. */
static inline uint64_t nm_load(const nm_target *target, uint64_t bytes, uint64_t stored) {
    return nm_moved(target, target->cost.weight_byte, bytes, stored);
}

/* How many times as long a product or a lane's step takes as one of 8-bit activations. */
static inline uint64_t nm_slowdown(const nm_target *target, const nm_work *work) {
    return work->input_item == 2 ? target->cost.wide : 1;
}

/* Output pixels of a call. */
static inline uint64_t nm_pixels(const nm_work *work) {
    return nm_mul(nm_mul(work->batch, work->rows), work->width);
}

/* Passes over the array's output channels: all cores work on neighbouring groups of M in lock-step.
 */
static inline uint64_t nm_channel_groups(const nm_target *target, uint64_t channels) {
    return nm_ceil_div(channels, (uint64_t)target->units * target->cores);
}

/* Set-up per output row of every image, `passes` times, and of the call. */
static inline uint64_t nm_setup(const nm_target *target, const nm_work *work, uint64_t passes) {
    const uint64_t rows = nm_mul(work->batch, work->rows);
    return nm_add(nm_mul(nm_mul(target->cost.row, rows), passes), target->cost.call);
}

/* What outputs take beside their products: M of each pixel `passes` times. */
static NM_ONCE uint64_t nm_outputs(const nm_target *target, const nm_work *work, uint64_t passes) {
    return nm_mul(target->cost.output, nm_mul(nm_pixels(work), passes));
}

/* Dot products of `depth` cycles, `slowdown` times as long, for each of `pixels`, `passes` times
 * over tiles of A pixels. The weights of a pass load while its tile computes, so a tile takes the
 * longer of the two. Overhead is left zero. `stored` is as in nm_work. */
nm_cost nm_tiled_cost(const nm_target *target, uint64_t slowdown, uint64_t pixels, uint64_t depth,
                      uint64_t passes, uint64_t weight_bytes, uint64_t stored);

nm_cost nm_conv_cost(const nm_target *target, const nm_work *work);
nm_cost nm_lane_cost(const nm_target *target, const nm_work *work);
nm_cost nm_fc_cost(const nm_target *target, const nm_work *work);
nm_cost nm_element_cost(const nm_target *target, const nm_work *work);
nm_cost nm_softmax_cost(const nm_target *target, const nm_work *work);
nm_cost nm_reduce_cost(const nm_target *target, const nm_work *work);
nm_cost nm_matmul_cost(const nm_target *target, const nm_work *work);
nm_cost nm_recurrent_cost(const nm_target *target, const nm_work *work);
nm_cost nm_update_cost(const nm_target *target, const nm_work *work);

#endif
