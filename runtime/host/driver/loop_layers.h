/* Describes a loop as layers: calls of its body that differ only in their rows form one layer.
 * Rings that one layer writes and others read may be moved to the cache. */
#ifndef ND_LOOP_LAYERS_H
#define ND_LOOP_LAYERS_H

#include "access.h"

#if ND_THREADS

/* Limits: calls of a loop's body, calls of one layer, layers. Larger loops run from the microcode.
 */
enum { ND_BODY_CALLS = 32, ND_LAYER_CALLS = 8, ND_LAYERS = 16 };

/* Place of an operand in the cache: row y is at byte `at` + (y mod ring) * pitch. */
typedef struct {
    uint32_t at, ring;
} nd_cache_place;

typedef struct {
    const nd_item *item; /* the first of its calls */
    uint32_t calls, ordinal[ND_LAYER_CALLS];
    int64_t first, step; /* rows of all its calls in one iteration, like those of one call */
    uint32_t rows;
    uint32_t cached; /* mask of operands that are in the cache */
    nd_cache_place places[NEUTRON_MAX_OPERANDS];
    bool ring;       /* its output is a ring of this loop */
    bool shares;     /* the ring shares bytes of scratch with another one */
    bool buffered;   /* its output, which overlaps its own input, goes to the cache */
    bool one_by_one; /* its calls cannot be merged */
} nd_layer;

typedef struct {
    const nd_item *body; /* calls, in their order */
    uint32_t calls, iterations;
    uint32_t together; /* iterations that run as one group */
    uint32_t layer_of[ND_BODY_CALLS];
    nd_layer layers[ND_LAYERS];
    uint32_t count; /* of layers */
} nd_cascade;

/* A bound on the time that planning takes, in comparisons of two calls: some milliseconds, whatever
 * the microcode says. */
typedef struct {
    uint64_t left;
} nd_budget;

/* Count `work` comparisons; false when the budget is used up. */
bool nd_spend(nd_budget *budget, uint64_t work);
/* Find the layers and rings of a loop; false where the loop has to run from the microcode. */
bool nd_read_cascade(nd_cascade *cascade, nd_budget *budget, const nd_item *body, uint32_t calls,
                     uint32_t iterations);
/* Output rows of a layer in iterations [from, to). */
nd_span nd_layer_rows(const nd_layer *layer, uint32_t from, uint32_t to);

#endif
#endif
