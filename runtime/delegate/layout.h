/* What stands between a program's tensor and the bytes the graph wants, and the copies that bridge
 * it. */
#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>

namespace openneutron {

/* Per image of the batch, `rows` x `columns` elements as the program's tensor holds them; the graph
 * wants them transposed. rows or columns of 1 mean that both orders are the same bytes.
 */
struct Transpose {
    size_t images, rows, columns, element_bytes;

    bool needed() const { return rows > 1 && columns > 1; }
};

/* How `tensor` has to be rearranged so that it lies channels-last (or in plain order). `what` names
 * it in the log. */
executorch::runtime::Error plan_transpose(const executorch::aten::Tensor &tensor,
                                          bool channels_last, const char *what,
                                          Transpose &transpose);

/* Program -> graph, and with `back` graph -> program. */
void run_transpose(const Transpose &transpose, bool back, const void *source, void *target);

} // namespace openneutron
