/* How much of a model's runs is shared among threads: what turns out to be fastest.
 *
 * What sharing costs depends on where the system puts threads, and on who else is there: between
 * processors with a cache of their own it can be more than half of a run is worth. So the first
 * runs try each degree in turn, later ones take the fastest, and now and then one looks again.
 * Results are the same bytes in any case. */
#ifndef ND_TRIAL_H
#define ND_TRIAL_H

#include "platform.h"

#if ND_THREADS

enum { ND_SHARE_NOTHING, ND_SHARE_LARGE, ND_SHARE_ALL, ND_DEGREES };

typedef struct {
    uint64_t taken[ND_DEGREES]; /* nanoseconds; 0: not tried yet */
    uint64_t began;
    uint32_t runs, degree;
} nd_trial;

/* The degree for the run that begins. */
uint32_t nd_trial_begin(nd_trial *trial);
/* It is over, and was like any other. */
void nd_trial_end(nd_trial *trial);

#endif
#endif
