#include "formulas.h"

/* Dense and grouped convolution: every group of output channels reads its share of the input
 * channels, N at a time. */
nm_cost nm_conv_cost(const nm_target *target, const nm_work *work) {
    const uint64_t groups = nm_at_least_one(work->groups);
    const uint64_t taps = nm_mul(nm_at_least_one(work->kernel_h), nm_at_least_one(work->kernel_w));
    const uint64_t depth =
        nm_mul(taps, nm_ceil_div(nm_ceil_div(work->input_channels, groups), target->length));
    const uint64_t passes =
        nm_mul(groups, nm_channel_groups(target, nm_ceil_div(work->channels, groups)));
    nm_cost cost = nm_tiled_cost(target, nm_slowdown(target, work), nm_pixels(work), depth, passes,
                                 work->weight_bytes, work->stored_bytes);
    cost.compute = nm_add(cost.compute, nm_outputs(target, work, passes));
    cost.overhead = nm_setup(target, work, passes);
    return cost;
}
