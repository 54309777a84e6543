#include "formulas.h"

/* Maximum, sum of exponentials, scaling: three walks over a vector, M lanes at a time (assumed). */
enum { WALKS = 3 };

nm_cost nm_softmax_cost(const nm_target *target, const nm_work *work) {
    const uint64_t steps = nm_mul(nm_pixels(work), nm_channel_groups(target, work->channels));
    const nm_cost cost = {
        nm_mul(nm_mul(nm_mul(target->cost.lane, nm_slowdown(target, work)), WALKS), steps), 0,
        nm_setup(target, work, 1)};
    return cost;
}
