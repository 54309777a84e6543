/* What instructions still to come read of scratch: the rest of it need not be there. */
#ifndef ND_LATER_H
#define ND_LATER_H

#include "layers.h"

#if ND_THREADS

/* Instructions of a loop's body, which lie behind it. */
uint32_t nd_loop_length(const nd_item *loop);
/* Whether one side of a copy touches bytes of scratch. */
bool nd_copies(uint8_t region, uint32_t offset, uint32_t bytes, nd_span scratch);
/* Whether instructions from `from` to the last may read bytes of scratch that they did not write.
 */
bool nd_read_later(const nd_item *from, nd_span bytes, nd_effort *effort);

#endif
#endif
