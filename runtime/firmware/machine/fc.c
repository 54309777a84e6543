#include "formulas.h"

/* Fully connected: a 1x1 convolution whose pixels are the vectors of the batch, so almost always
 * bound by its weights. The published autoencoder latency leaves no room for a set-up per row, so
 * there is none. */
nm_cost nm_fc_cost(const nm_target *target, const nm_work *work) {
    const uint64_t depth = nm_ceil_div(work->input_channels, target->length);
    const uint64_t passes = nm_channel_groups(target, work->channels);
    nm_cost cost = nm_tiled_cost(target, nm_slowdown(target, work), nm_pixels(work), depth, passes,
                                 work->weight_bytes, work->stored_bytes);
    cost.compute = nm_add(cost.compute, nm_outputs(target, work, passes));
    cost.overhead = target->cost.call;
    return cost;
}
