/* Loops whose stripes a host runs several at a time.
 *
 * A cascade's calls compute a row or two each, so that rings stay small; on a host, what a call
 * costs besides its rows is a tenth of the time. A plan says of a loop how many iterations may run
 * together: every layer once for all their rows. Rings are then held in memory of the thread with
 * as many rows as that takes. Two accesses to the same bytes, one of them a write, keep their
 * order, so every byte that is read is what the iterations one by one leave; cycles are those of
 * the iterations one by one. */
#ifndef ND_CASCADE_H
#define ND_CASCADE_H

#include "held.h"
#include "layers.h"

#if ND_THREADS

/* Plan a loop around what `held` holds already, and read what of that it can; false where it has to
 * run as it is. What the loop itself holds is taken until the next nd_held_clear. */
bool nd_plan_cascade(nd_cascade *cascade, nd_held *held, nd_effort *effort, const nd_item *body,
                     uint32_t calls, uint32_t iterations);

#endif
#endif
