/* Chooses how much of a model's runs is shared among threads, by measuring.
 *
 * The cost of sharing depends on where the system places threads and on other processes: between
 * processors without a common cache it can exceed half of a run. So sharing all calls and sharing
 * none are measured first, then the faster one is used, and from time to time another degree is
 * tried. A try takes several runs in a row, because the first one finds threads asleep and data in
 * other caches. Results are the same bytes in any case. */
#ifndef ND_THREAD_TUNING_H
#define ND_THREAD_TUNING_H

#include "platform.h"

#if ND_THREADS

/* How much is shared. ROWS: only calls in which each thread computes the same rows as in the call
 * before. */
enum { ND_SHARE_NOTHING, ND_SHARE_ROWS, ND_SHARE_ALL, ND_DEGREES };

typedef struct {
    uint64_t best_time[ND_DEGREES]; /* nanoseconds of its best recent run; 0: not tried yet */
    uint64_t began, spent;          /* of this run; of the runs in a row so far */
    uint64_t best;                  /* of the runs in a row; 0: none counts yet */
    uint32_t degree, usual;         /* of this run; of runs that try nothing else */
    uint32_t run, length;           /* number of this run in the row, and its length */
    uint32_t runs_between_tries, tries;
} nd_tuning;

/* Return the degree for the run that begins. */
uint32_t nd_tuning_begin_run(nd_tuning *tuning);
/* Record the time of the run; not called for a run that failed or was observed. */
void nd_tuning_end_run(nd_tuning *tuning);

#endif
#endif
