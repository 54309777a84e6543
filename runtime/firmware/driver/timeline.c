#include "timeline.h"

#include <string.h>

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

void nd_timeline_start(nd_timeline *timeline) { memset(timeline, 0, sizeof *timeline); }

void nd_timeline_call(nd_timeline *timeline, const nm_cost *cost, uint64_t *start, uint64_t *end) {
    *start = timeline->array;
    *end = *start + nm_cycles(cost);
    timeline->array = *end;
}

void nd_timeline_copy(nd_timeline *timeline, const nm_target *target, uint32_t channel,
                      const nm_cost *cost, uint64_t *start, uint64_t *end) {
    *start = later(timeline->array, timeline->copier);
    *end = *start + nm_cycles(cost);
    timeline->copier = *end;
    timeline->channel[channel] = *end;
#if ND_CYCLES
    if (!target->cost.dma_overlaps) timeline->array = *end;
#else
    (void)target; /* not called */
#endif
}

void nd_timeline_wait(nd_timeline *timeline, uint32_t channel) {
    timeline->array = later(timeline->array, timeline->channel[channel]);
}

uint64_t nd_timeline_end(const nd_timeline *timeline) {
    return later(timeline->array, timeline->copier);
}
