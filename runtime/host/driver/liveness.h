/* Liveness of scratch: which bytes later instructions still read. */
#ifndef ND_LIVENESS_H
#define ND_LIVENESS_H

#include "loop_layers.h"

#if ND_THREADS

/* Number of instructions in a loop's body. */
uint32_t nd_loop_length(const nd_item *loop);
/* Whether one side of a copy overlaps bytes of scratch. */
bool nd_copy_side_overlaps(uint8_t region, uint32_t offset, uint32_t bytes, nd_span scratch);
/* Whether an instruction from `from` to the last may read bytes of scratch that no instruction in
 * between has written. True when the budget is used up. */
bool nd_is_read_later(const nd_item *from, nd_span bytes, nd_budget *budget);

#endif
#endif
