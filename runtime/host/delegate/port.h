/* One input or output of the graph and the argument of the delegate that holds it. */
#pragma once

#include <cstdint>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>

#include "buffer.h"
#include "layout.h"
#include "neutron.h"

namespace openneutron {

/* Check the argument against the tensor table, and give the driver its memory, or a copy where its
 * address is not aligned or its elements are in another order. */
class Port {
  public:
    Port(const NeutronTensorInfo &tensor, bool channels_last, size_t argument);

    executorch::runtime::Error bind(executorch::runtime::Span<executorch::runtime::EValue *> args,
                                    executorch::runtime::MemoryAllocator *temporary);
    /* For inputs, before the run. */
    void read() const;
    /* For outputs, after it. */
    void write() const;

    void *data() const { return copied_ ? copy_ : outside_; }

  private:
    executorch::runtime::Error check(const executorch::aten::Tensor &tensor,
                                     const char *what) const;

    NeutronTensorInfo tensor_;
    bool channels_last_;
    size_t argument_;
    void *outside_ = nullptr;
    bool copied_ = false;
    Transpose transpose_{};
    void *copy_ = nullptr; /* of this run, where one is needed */
    Buffer own_;
};

} // namespace openneutron
