/* The simulator's clock. Two engines: the array, which also issues every instruction in order, and
 * the copy engine.
 *
 * CALL starts when the array is free and holds it. DMA on a target whose copies overlap starts when
 * the copy engine is free, not before it is issued, and the array goes on at once; elsewhere the
 * copy holds the array. Copies run in the order of issue, one at a time. WAIT holds the array until
 * the last copy of its channel is done. A run ends when both are.
 */
#ifndef ND_TIMELINE_H
#define ND_TIMELINE_H

#include <stdint.h>

#include "machine.h"

/* Copy channels a program may use: eight streams, double-buffered. */
enum { ND_MAX_CHANNELS = 16 };

typedef struct {
    uint64_t array, copier;
    uint64_t channel[ND_MAX_CHANNELS];
} nd_timeline;

void nd_timeline_start(nd_timeline *timeline);
/* Advance by a call or copy and say when it ran. */
void nd_timeline_call(nd_timeline *timeline, const nm_cost *cost, uint64_t *start, uint64_t *end);
void nd_timeline_copy(nd_timeline *timeline, const nm_target *target, uint32_t channel,
                      const nm_cost *cost, uint64_t *start, uint64_t *end);
void nd_timeline_wait(nd_timeline *timeline, uint32_t channel);
uint64_t nd_timeline_end(const nd_timeline *timeline);

#endif
