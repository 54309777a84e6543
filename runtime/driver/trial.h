/* How much of a model's runs is shared among threads: what turns out to be fastest.
 *
 * What sharing costs depends on where the system puts threads, and on who else is there: between
 * processors with a cache of their own it can be more than half of a run is worth. So all and
 * nothing are tried first, then the faster one is taken, and now and then another is looked at. A
 * degree has several runs in a row: the first finds threads asleep and data in other caches, unlike
 * those that follow. Results are the same bytes in any case. */
#ifndef ND_TRIAL_H
#define ND_TRIAL_H

#include "platform.h"

#if ND_THREADS

/* ROWS: only where each thread has rows of its own from call to call. */
enum { ND_SHARE_NOTHING, ND_SHARE_ROWS, ND_SHARE_ALL, ND_DEGREES };

typedef struct {
    uint64_t taken[ND_DEGREES]; /* nanoseconds of its best run of late; 0: not tried yet */
    uint64_t began, spent;      /* of this run; by the runs in a row before it */
    uint64_t best;              /* of the runs in a row; 0: none counts yet */
    uint32_t degree, usual;     /* of this run; of all that look at no other */
    uint32_t row, length;       /* runs in a row, and how many they will be */
    uint32_t apart, looks;      /* runs between two looks at another degree; looks so far */
} nd_trial;

/* The degree for the run that begins. */
uint32_t nd_trial_begin(nd_trial *trial);
/* It is over, and was like any other. */
void nd_trial_end(nd_trial *trial);

#endif
#endif
