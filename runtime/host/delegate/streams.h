/* A registry of the loaded models by stream name. ExecuTorch gives no access to a delegate's
 * handle, so a reset names the stream instead. */
#pragma once

#include <executorch/runtime/core/error.h>

#include "model.h"

namespace openneutron {

/* Add a model under the name it was loaded with, "" without one; false without memory. */
bool add_to_streams(Model *model, const char *stream);
void remove_from_streams(const Model *model);

/* Reset the state of every model of that name; null: of all models. */
executorch::runtime::Error reset_streams(const char *stream);

} // namespace openneutron
