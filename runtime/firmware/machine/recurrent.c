#include "formulas.h"

/* A recurrent layer: every step multiplies each of its weights once per sequence of the batch, and
 * a step waits for the one before, so weights are loaded anew in every step. They are packed in
 * blocks of M x N, one cycle each; what follows the products goes element by element. */
nm_cost nm_recurrent_cost(const nm_target *target, const nm_work *work) {
    const uint64_t block = (uint64_t)target->units * target->length;
    const uint64_t blocks = nm_ceil_div(nm_ceil_div(work->weight_bytes, block), target->cores);
    const uint64_t sequences = nm_mul(work->batch, work->width);
    const uint64_t compute = nm_mul(nm_mul(target->cost.mac, blocks), sequences);
    const uint64_t load = nm_load(target, work->weight_bytes, work->stored_bytes);
    nm_cost cost = {nm_mul(compute, work->rows), 0, 0};
    if (load > compute) cost.memory = nm_mul(load - compute, work->rows);
    cost.memory = nm_add(cost.memory, nm_mul(target->cost.element, work->moved_bytes));
    cost.overhead = nm_setup(target, work, 1);
    return cost;
}
