/* Memory of a thread in which a host holds rows of tensors, and whose rows they are.
 *
 * An output that would lie over its own input is made there instead, and stays there: it is lent.
 * Later calls read it there. Scratch has its bytes only once somebody needs them: until then they
 * are owed, and those that others overwrite are owed no more. */
#ifndef ND_HELD_H
#define ND_HELD_H

#include "reach.h"

#if ND_THREADS

/* Bytes of rows held beside the model's memory, per thread: they stay in a second-level cache. */
enum { ND_HELD_BYTES = 262144 };
/* The same of a model that several threads run: whole layers of large networks, so that a call has
 * rows for each. */
enum { ND_SHARED_HELD_BYTES = 2097152 };

enum { ND_MOST_LENT = 8, ND_MOST_TAKEN = 32 };

/* The output of `item`, all rows of it, at byte `place.first` of the thread's memory. */
typedef struct {
    const nd_item *item;
    nd_span place, owed; /* bytes there; bytes of scratch */
    bool whole;          /* nobody overwrote any of it */
} nd_lent;

typedef struct {
    uint32_t room, most; /* bytes that may be taken, and that a run needs */
    uint32_t lent_count, taken_count;
    nd_lent lent[ND_MOST_LENT];
    nd_span taken[ND_MOST_TAKEN]; /* by the loop at hand */
} nd_held;

/* Forget what the loop at hand took. */
void nd_held_clear(nd_held *held);
/* Room for `rows` rows of an operand; false when there is none. */
bool nd_held_take(nd_held *held, const nk_operand *o, int64_t rows, uint32_t *at);
/* The loop at hand runs with what it took. */
void nd_held_keep(nd_held *held);
/* The output of a loop's layer, made at byte `at`, is lent from now on; ND_MOST_LENT are not
 * exceeded. */
void nd_held_lend(nd_held *held, const nd_item *item, uint32_t at);
void nd_held_drop(nd_held *held, uint32_t lent);
/* The lent output that an operand can be read from, or NULL. */
const nd_lent *nd_held_find(const nd_held *held, const nd_item *item, uint32_t operand);
/* Whether a call, in all its iterations, needs owed bytes of `lent` in their place: it reads them
 * otherwise than where they are held, which only counts if `lending`, or overwrites what cannot be
 * told. */
bool nd_held_needed(const nd_lent *lent, const nd_item *item, bool lending);
/* The call was made. */
void nd_held_written(nd_held *held, const nd_item *item);

#endif
#endif
