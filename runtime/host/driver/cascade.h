/* Plans loops so that a host runs several iterations per call.
 *
 * A cascade's calls compute one or two rows each to keep rings small; on a host the fixed cost of a
 * call is then a tenth of the time. The plan says how many iterations may run as one group: each
 * layer once, for all their rows. Rings are held in the row cache, with as many rows as that takes.
 * Two accesses to the same bytes, one of them a write, keep their order, so every read finds what
 * the iterations one by one would have left there. Cycles are those of the iterations one by one.
 */
#ifndef ND_CASCADE_H
#define ND_CASCADE_H

#include "loop_layers.h"
#include "row_cache.h"

#if ND_THREADS

/* Plan a loop, reading from the cache what it already holds; false where the loop has to run from
 * the microcode. The plan's reservations in the cache last until nd_cache_release_reserved. */
bool nd_plan_cascade(nd_cascade *cascade, nd_row_cache *cache, nd_budget *budget,
                     const nd_item *body, uint32_t calls, uint32_t iterations);

#endif
#endif
