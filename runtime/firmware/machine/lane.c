#include "formulas.h"

/* Depth-wise convolution and pooling: no operand is shared between channels, so one tap of M
 * channels per step. Weights load beside it and show only where a call has next to no pixels. */
nm_cost nm_lane_cost(const nm_target *target, const nm_work *work) {
    const uint64_t taps = nm_mul(nm_at_least_one(work->kernel_h), nm_at_least_one(work->kernel_w));
    const uint64_t passes = nm_channel_groups(target, work->channels);
    nm_cost cost = {
        nm_mul(nm_mul(nm_mul(target->cost.lane, nm_slowdown(target, work)), nm_pixels(work)),
               nm_mul(taps, passes)),
        0, 0};
    cost.compute = nm_add(cost.compute, nm_outputs(target, work, passes));
    const uint64_t load = nm_load(target, work->weight_bytes, work->stored_bytes);
    if (load > cost.compute) cost.memory = load - cost.compute;
    cost.overhead = nm_setup(target, work, passes);
    return cost;
}
