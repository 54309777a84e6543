#include "formulas.h"

/* Element-wise, table look-up and copy: bound by the bytes read and written. */
nm_cost nm_element_cost(const nm_target *target, const nm_work *work) {
    const nm_cost cost = {0, nm_mul(target->cost.element, work->moved_bytes),
                          nm_setup(target, work, 1)};
    return cost;
}
