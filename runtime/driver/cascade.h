/* Loops whose stripes a host runs several at a time.
 *
 * A cascade's calls compute a row or two each, so that rings stay small; on a host, what a call
 * costs besides its rows is a tenth of the time. A plan, made when a model is prepared, says of
 * each loop how many iterations may run together: every call once for all their rows. Rings are
 * then held in memory of the thread with as many rows as that takes, and what they would hold after
 * the loop is copied back. Two accesses to the same bytes, one of them a write, keep their order,
 * so every byte outside that memory is what the iterations one by one leave; cycles are those of
 * the iterations one by one. */
#ifndef ND_CASCADE_H
#define ND_CASCADE_H

#include "model.h"

#if ND_THREADS

/* Bytes of rings and stripes held beside the model's memory, per thread: they stay in a
 * second-level cache. */
enum { ND_SHADOW_BYTES = 262144 };
/* The same of a model that several threads run: whole layers of large networks, so that a call has
 * rows for each. */
enum { ND_SHARED_SHADOW_BYTES = 2097152 };
/* Calls of a loop's body, and shadows of one loop; longer ones run as they are. */
enum { ND_CASCADE_CALLS = 16, ND_CASCADE_SHADOWS = 40 };

typedef enum {
    ND_RING_READ,
    ND_RING_WRITTEN, /* copied back after the loop */
    ND_STRIPE,       /* an output over the call's own input: copied back after the call */
    ND_APART         /* a call that runs iteration by iteration; nothing is held */
} nd_shadow_kind;

/* An operand that is held elsewhere: row y at byte `at` + (y mod ring) * pitch. */
typedef struct {
    uint8_t call, operand, kind;
    uint32_t ring, at;
} nd_shadow;

/* A loop, found by where its body begins. */
typedef struct {
    uint32_t body, calls, together;
    uint32_t first, count; /* its shadows */
    uint64_t cycles;       /* of all its calls, which the array runs one after the other */
} nd_cascade;

struct nd_plan {
    uint32_t loops;
    const nd_shadow *shadows;
    uint8_t *memory; /* for shadows; NULL: the thread's own is enough */
    nd_cascade cascades[];
};

/* The plan of a validated program with `room` bytes of shadows; NULL where nothing runs together,
 * or there is no memory. */
nd_plan *nd_plan_make(const nd_program *program, uint32_t room);
void nd_plan_free(nd_plan *plan);
/* NULL: the loop runs as it is. */
const nd_cascade *nd_plan_find(const nd_plan *plan, uint32_t body);
/* Memory for shadows: the plan's, or this thread's. */
uint8_t *nd_shadow_memory(const nd_plan *plan);

#endif
#endif
