#include "formulas.h"

/* A box written into a tensor: bound by the bytes of the box, and where the rest of the tensor has
 * to come along, by these too. Its price does not depend on the tensor's rows. */
nm_cost nm_update_cost(const nm_target *target, const nm_work *work) {
    const nm_cost cost = {0, nm_mul(target->cost.element, work->moved_bytes),
                          nm_add(target->cost.row, target->cost.call)};
    return cost;
}
