#include "formulas.h"

/* Sum, mean, minimum, maximum: each byte passes a lane once. Fewer results than inputs, so the
 * inputs decide. */
nm_cost nm_reduce_cost(const nm_target *target, const nm_work *work) {
    const uint64_t steps = nm_channel_groups(target, work->moved_bytes);
    const nm_cost cost = {nm_mul(target->cost.lane, steps), 0, nm_setup(target, work, 1)};
    return cost;
}
