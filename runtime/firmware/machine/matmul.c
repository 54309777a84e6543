#include "formulas.h"

/* Product of two activations: per image a 1x1 convolution whose weights are the second operand,
 * padded to the array. */
nm_cost nm_matmul_cost(const nm_target *target, const nm_work *work) {
    const uint64_t depth = nm_ceil_div(work->input_channels, target->length);
    const uint64_t passes = nm_channel_groups(target, work->channels);
    const uint64_t block = (uint64_t)target->length * target->units * target->cores;
    const uint64_t loaded = nm_mul(nm_mul(depth, passes), block);
    nm_cost cost = nm_tiled_cost(target, nm_slowdown(target, work), nm_mul(work->rows, work->width),
                                 depth, passes, loaded, 0);
    cost.compute = nm_mul(cost.compute, work->batch);
    cost.memory = nm_mul(cost.memory, work->batch);
    cost.overhead = nm_setup(target, work, passes);
    return cost;
}
