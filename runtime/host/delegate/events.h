/* Kernel calls of a profiled run as ETDump delegate events. */
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include <executorch/runtime/core/event_tracer.h>

#include "neutron.h"

namespace openneutron {

/* Forwards the driver's events of one run to the tracer, for as long as it lives.
 *
 * An event is named `<kernel>:<L1 node>` (`dma:<channel>` for a copy), which is its key in the
 * delegate's debug map; the second call of a node in a run gets `.1` behind it, and so on, because
 * Inspector keeps one event of a name. Times are the simulator's cycles at the target's clock,
 * counted from the moment the run began, so that Inspector shows real milliseconds of the target;
 * the metadata has the exact cycles.
 */
class EventRecorder {
  public:
    EventRecorder(executorch::runtime::EventTracer *tracer, NeutronModelHandle model,
                  uint32_t clock_hz);
    ~EventRecorder();
    EventRecorder(const EventRecorder &) = delete;
    EventRecorder &operator=(const EventRecorder &) = delete;

  private:
    static void record(void *self, const NeutronEvent *event);
    uint32_t count(const NeutronEvent &event);
    uint64_t ticks(uint64_t cycles) const;

    executorch::runtime::EventTracer *tracer_;
    NeutronModelHandle model_;
    uint64_t clock_hz_;
    uint64_t start_;
    std::map<std::pair<uint16_t, uint32_t>, uint32_t> counts_; /* by kernel and node, of this run */
};

} // namespace openneutron
