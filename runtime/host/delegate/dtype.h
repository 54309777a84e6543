/* ExecuTorch's element types in the numbering of the tensor table. */
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>

namespace openneutron {

/* -1 for a type that no graph takes. */
int dtype_of(executorch::aten::ScalarType type);
const char *dtype_name(int dtype);

} // namespace openneutron
