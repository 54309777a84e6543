/* Reads the arguments of a call in the order of the operator's schema, and refuses what does not
 * fit instead of aborting, as EValue's own accessors would. */
#pragma once

#include <cstdint>

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>

#include "view.h"

namespace host_ops {

using Stack = executorch::runtime::Span<executorch::runtime::EValue *>;
using Context = executorch::runtime::KernelRuntimeContext;

struct Ints {
    const int64_t *data = nullptr;
    int64_t count = 0;

    int64_t operator[](int64_t i) const { return data[i]; }
};

class Arguments {
  public:
    Arguments(Context &context, Stack stack, const char *name)
        : context_(context), stack_(stack), name_(name) {}

    View tensor(); /* INT8 unless the kernel asks for its dtype */
    View tensor(executorch::aten::ScalarType dtype);
    View any_tensor();
    View optional_tensor(executorch::aten::ScalarType dtype); /* data is null when it is absent */
    int64_t integer();
    int32_t int32(); /* an integer that must fit */
    double number();
    bool boolean();
    Ints integers(int64_t at_least);
    void skip(); /* an argument the host does not need: scratch, dtype */

    /* Whether everything read so far was what the schema says. A kernel returns when it is not. */
    bool ok() const { return ok_; }

    /* Refuses the call with a sentence unless `condition` holds; returns ok(). */
    bool require(bool condition, const char *sentence) {
        if (!condition) fail(sentence);
        return condition && ok_;
    }

  private:
    executorch::runtime::EValue *next();
    void refuse(const char *sentence);
    void fail(const char *sentence);

    Context &context_;
    Stack stack_;
    const char *name_;
    size_t at_ = 0;
    bool ok_ = true;
};

} // namespace host_ops
