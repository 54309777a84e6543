#include "events.h"

#include <cinttypes>
#include <cstdio>

#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/platform/platform.h>

namespace openneutron {
namespace {

constexpr uint64_t kNanoseconds = 1000000000; /* per second */
constexpr double kPartsPerCycle = 1024;       /* unit of the machine model's costs */

/* a * b / c without overflow while c * b fits in 64 bits. */
uint64_t scale(uint64_t a, uint64_t b, uint64_t c) { return a / c * b + a % c * b / c; }

} // namespace

EventRecorder::EventRecorder(executorch::runtime::EventTracer *tracer, NeutronModelHandle model,
                             uint32_t clock_hz)
    : tracer_(tracer), model_(model), clock_hz_(clock_hz),
      start_(executorch::runtime::pal_current_ticks()) {
    neutronSetEventSink(model_, record, this);
}

EventRecorder::~EventRecorder() { neutronSetEventSink(model_, nullptr, nullptr); }

uint64_t EventRecorder::ticks(uint64_t cycles) const {
    const et_tick_ratio_t ratio = executorch::runtime::pal_ticks_to_ns_multiplier();
    return start_ +
           scale(scale(cycles, kNanoseconds, clock_hz_), ratio.denominator, ratio.numerator);
}

uint32_t EventRecorder::count(const NeutronEvent &event) {
    return counts_[{event.kernel, event.tag}]++;
}

void EventRecorder::record(void *self, const NeutronEvent *event) {
    EventRecorder &recorder = *static_cast<EventRecorder *>(self);
    const char *kernel = event->kernel == 0 ? "dma" : neutronKernelName(event->kernel);
    const uint32_t before = recorder.count(*event);
    char name[64];
    const int end =
        std::snprintf(name, sizeof(name), "%s:%" PRIu32, kernel ? kernel : "unknown", event->tag);
    if (before > 0) {
        std::snprintf(name + end, sizeof(name) - static_cast<size_t>(end), ".%" PRIu32, before);
    }
    char metadata[256];
    const int length = std::snprintf(metadata, sizeof(metadata),
                                     "cycles=%" PRIu64 " start=%" PRIu64
                                     " compute=%.1f memory=%.1f overhead=%.1f first_row=%" PRId32
                                     " rows=%" PRIu32 " macs=%" PRIu64 " bytes=%" PRIu64,
                                     event->end - event->start, event->start,
                                     static_cast<double>(event->compute) / kPartsPerCycle,
                                     static_cast<double>(event->memory) / kPartsPerCycle,
                                     static_cast<double>(event->overhead) / kPartsPerCycle,
                                     event->firstRow, event->rows, event->macs, event->bytes);
    executorch::runtime::event_tracer_log_profiling_delegate(
        recorder.tracer_, name, executorch::runtime::kUnsetDelegateDebugIntId,
        recorder.ticks(event->start), recorder.ticks(event->end), metadata,
        static_cast<size_t>(length));
}

} // namespace openneutron
