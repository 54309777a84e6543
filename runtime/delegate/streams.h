/* The models that live in this process. ExecuTorch hands out no handle of a delegate, so whoever
 * wants to begin a stream again names it instead. */
#pragma once

#include <executorch/runtime/core/error.h>

#include "model.h"

namespace openneutron {

/* `stream` is the name the model was loaded with, "" for none. False: no memory to remember it. */
bool add_to_streams(Model *model, const char *stream);
void remove_from_streams(const Model *model);

/* The state of every model of that name as it was when loaded; null: of all models. */
executorch::runtime::Error reset_streams(const char *stream);

} // namespace openneutron
