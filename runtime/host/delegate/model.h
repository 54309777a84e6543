/* One delegated subgraph, prepared by the driver and ready to run. */
#pragma once

#include <memory>
#include <vector>

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

#include "buffer.h"
#include "neutron.h"
#include "payload.h"
#include "port.h"
#include "shared.h"

namespace openneutron {

class Model {
  public:
    /* Load a payload. `processed` stays the runtime's and must outlive the model; it is freed at
     * once when it had to be copied. Weights that are stored apart are in the program's `named`
     * data, which may be null. */
    static executorch::runtime::Result<Model *> load(
        executorch::runtime::FreeableBuffer &processed,
        const executorch::runtime::NamedDataMap *named);
    ~Model();
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;

    /* Run once. `temporary` may be null: the model then keeps its own memory for scratch and
     * copies. */
    executorch::runtime::Error run(executorch::runtime::Span<executorch::runtime::EValue *> args,
                                   executorch::runtime::EventTracer *tracer,
                                   executorch::runtime::MemoryAllocator *temporary);

    /* Reset the state to its contents after loading. */
    executorch::runtime::Error reset();

  private:
    Model() = default;
    executorch::runtime::Error prepare(executorch::runtime::FreeableBuffer &processed,
                                       const executorch::runtime::NamedDataMap *named);
    executorch::runtime::Error add_ports(const Payload &payload);
    executorch::runtime::Error add_buffers();
    executorch::runtime::Error bind(executorch::runtime::Span<executorch::runtime::EValue *> args,
                                    executorch::runtime::MemoryAllocator *temporary,
                                    NeutronDataConfig &data);

    Buffer payload_;                 /* used when the program holds its payload unaligned */
    std::shared_ptr<Shared> shared_; /* null where the payload is whole; outlives the handle */
    NeutronModelHandle handle_ = nullptr;
    NeutronModelInfo info_{};
    uint32_t clock_hz_ = 0;
    std::vector<Port> inputs_, outputs_;
    std::vector<const void *> input_data_;
    std::vector<void *> output_data_; /* graph outputs, then scratch, profile, debug */
    Buffer scratch_, prefetch_, profile_, debug_;
};

} // namespace openneutron
