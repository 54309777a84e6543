#include "formulas.h"
#include "generated/microcode.h"

enum {
    STEPS_PER_CYCLE = 1024
}; /* constants are in 1/1024 cycle so that all arithmetic is integer */

nm_cost nm_call_cost(const nm_target *target, const nm_work *work) {
    const nm_cost nothing = {0, 0, 0};
    if (work->rows == 0) return nothing;
    switch (work->formula) {
    case NEUTRON_COST_CONV: return nm_conv_cost(target, work);
    case NEUTRON_COST_LANE: return nm_lane_cost(target, work);
    case NEUTRON_COST_FC: return nm_fc_cost(target, work);
    case NEUTRON_COST_ELEMENT: return nm_element_cost(target, work);
    case NEUTRON_COST_SOFTMAX: return nm_softmax_cost(target, work);
    case NEUTRON_COST_REDUCE: return nm_reduce_cost(target, work);
    case NEUTRON_COST_MATMUL: return nm_matmul_cost(target, work);
    case NEUTRON_COST_RECURRENT: return nm_recurrent_cost(target, work);
    case NEUTRON_COST_UPDATE: return nm_update_cost(target, work);
    default: return nothing;
    }
}

nm_cost nm_dma_cost(const nm_target *target, uint64_t bytes, uint64_t stored) {
    const nm_cost cost = {0, nm_moved(target, target->cost.dma_byte, bytes, stored),
                          target->cost.dma_start};
    return cost;
}

uint64_t nm_cycles(const nm_cost *cost) {
    return nm_ceil_div(nm_add(nm_add(cost->compute, cost->memory), cost->overhead),
                       STEPS_PER_CYCLE);
}
