#define _GNU_SOURCE /* clock_gettime */

#include "thread_tuning.h"

#if ND_THREADS
#include <time.h>

/* Runs of a try, of which the first does not count, and its least duration: threads that slept are
 * awake by then. */
enum { TRY_RUNS = 2, TRY_NANOSECONDS = 250000 };
/* Runs between two tries: few at first, since a try may have been disturbed, then more while
 * nothing changes. Another degree may become faster when other processes end; tries should cost
 * less than a hundredth of the time. */
enum { MIN_RUNS_BETWEEN = 8, MAX_RUNS_BETWEEN = 1024 };

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Return the fastest of the degrees that were tried. */
static uint32_t fastest(const nd_tuning *tuning) {
    uint32_t found = ND_SHARE_NOTHING;
    /* Sharing that gains less than 1/32 is not worth a processor. */
    uint64_t least = tuning->best_time[ND_SHARE_NOTHING] - tuning->best_time[ND_SHARE_NOTHING] / 32;
    for (uint32_t degree = ND_SHARE_NOTHING + 1; degree < ND_DEGREES; degree++) {
        if (tuning->best_time[degree] == 0 || tuning->best_time[degree] >= least) continue;
        least = tuning->best_time[degree];
        found = degree;
    }
    return found;
}

static void try_degree(nd_tuning *tuning, uint32_t degree) {
    tuning->degree = degree;
    tuning->length = TRY_RUNS;
}

static void use_degree(nd_tuning *tuning, uint32_t degree) {
    const bool same = degree == tuning->usual && tuning->runs_between_tries != 0;
    const uint32_t more = 2 * tuning->runs_between_tries;
    tuning->runs_between_tries = !same                     ? MIN_RUNS_BETWEEN
                                 : more < MAX_RUNS_BETWEEN ? more
                                                           : MAX_RUNS_BETWEEN;
    tuning->degree = tuning->usual = degree;
    tuning->length = tuning->runs_between_tries;
}

/* Choose the degree of the next runs in a row. */
static void choose_next(nd_tuning *tuning) {
    const uint32_t best = fastest(tuning);
    if (tuning->best_time[ND_SHARE_ALL] == 0) try_degree(tuning, ND_SHARE_ALL);
    else if (tuning->best_time[ND_SHARE_NOTHING] == 0) try_degree(tuning, ND_SHARE_NOTHING);
    else if (tuning->best_time[ND_SHARE_ROWS] == 0 && best == ND_SHARE_NOTHING)
        try_degree(tuning, ND_SHARE_ROWS); /* sharing all is slower, rows alone may not be */
    else if (tuning->runs_between_tries == 0 || tuning->degree != tuning->usual ||
             best != tuning->usual)
        use_degree(tuning, best);
    else try_degree(tuning, (best + 1 + tuning->tries++ % (ND_DEGREES - 1)) % ND_DEGREES);
    tuning->run = 0;
    tuning->spent = tuning->best = 0;
}

uint32_t nd_tuning_begin_run(nd_tuning *tuning) {
    if (tuning->run >= tuning->length && (tuning->best != 0 || tuning->length == 0))
        choose_next(tuning);
    tuning->run++;
    tuning->began = nanoseconds();
    return tuning->degree;
}

void nd_tuning_end_run(nd_tuning *tuning) {
    const uint64_t now = nanoseconds() - tuning->began;
    tuning->spent += now;
    if (tuning->run > 1 && (tuning->best == 0 || now < tuning->best)) tuning->best = now | 1;
    if (tuning->run < tuning->length || tuning->best == 0) return;
    if (tuning->spent < TRY_NANOSECONDS) tuning->length++;
    else tuning->best_time[tuning->degree] = tuning->best;
}

#endif
