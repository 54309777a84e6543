/* A loop as layers: calls of its body that differ in nothing but their rows are one, and rings that
 * one layer writes and others read may be held anywhere. */
#ifndef ND_LAYERS_H
#define ND_LAYERS_H

#include "reach.h"

#if ND_THREADS

/* Calls of a loop's body, those of one layer, and layers; longer ones run as they are. */
enum { ND_BODY_CALLS = 32, ND_LAYER_CALLS = 8, ND_LAYERS = 16 };

/* Where an operand is held instead of its own place: row y at byte `at` + (y mod ring) * pitch. */
typedef struct {
    uint32_t at, ring;
} nd_shadow;

typedef struct {
    const nd_item *item; /* the first of its calls */
    uint32_t calls, ordinal[ND_LAYER_CALLS];
    int64_t first, step; /* rows of all of them in one iteration, as a call's */
    uint32_t rows;
    uint32_t held; /* mask of operands that are held elsewhere */
    nd_shadow shadows[NEUTRON_MAX_OPERANDS];
    bool ring;   /* its output is a ring of this loop */
    bool shares; /* bytes with another ring, when not held */
    bool lent;   /* its output, over its own input, is made elsewhere */
    bool apart;  /* its calls are made one by one */
} nd_layer;

typedef struct {
    const nd_item *body; /* calls, in their order */
    uint32_t calls, iterations, together;
    uint32_t layer_of[ND_BODY_CALLS];
    nd_layer layers[ND_LAYERS];
    uint32_t count; /* of layers */
} nd_cascade;

/* Comparisons of two calls that are left: some milliseconds, whatever the microcode. */
typedef struct {
    uint64_t left;
} nd_effort;

/* Count `work` comparisons; false when no more are allowed. */
bool nd_pay(nd_effort *effort, uint64_t work);
/* The layers and rings of a loop; false where it has to run as it is. */
bool nd_read_cascade(nd_cascade *cascade, nd_effort *effort, const nd_item *body, uint32_t calls,
                     uint32_t iterations);
/* Output rows of a layer in iterations [from, to). */
nd_span nd_layer_rows(const nd_layer *layer, uint32_t from, uint32_t to);

#endif
#endif
