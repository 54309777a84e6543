/* The element order of a program's tensor and of the graph, and copies between them. */
#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>

namespace openneutron {

/* A transposition per image of the batch: `rows` x `columns` elements in the program's tensor,
 * transposed in the graph. Rows or columns of 1 mean that both orders are the same bytes. */
struct Transpose {
    size_t images, rows, columns, element_bytes;

    bool needed() const { return rows > 1 && columns > 1; }
};

/* Find the transposition that makes `tensor` channels-last (or plain order). `what` names it in the
 * log. */
executorch::runtime::Error plan_transpose(const executorch::aten::Tensor &tensor,
                                          bool channels_last, const char *what,
                                          Transpose &transpose);

/* Program -> graph, and with `back` graph -> program. */
void run_transpose(const Transpose &transpose, bool back, const void *source, void *target);

} // namespace openneutron
