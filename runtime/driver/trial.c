#define _GNU_SOURCE /* clock_gettime */

#include "trial.h"

#if ND_THREADS
#include <time.h>

/* Runs between two looks at a degree that was slower: on another day, or once a neighbour of this
 * process has gone, it may be faster. */
enum { APART = 256 };
/* Rounds in which every degree has its turn at first: a first run finds cold caches. */
enum { ROUNDS = 3 };

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint32_t fastest(const nd_trial *trial) {
    uint32_t found = ND_SHARE_NOTHING;
    /* A thread that is asked for little is better left to others. */
    uint64_t least = trial->taken[ND_SHARE_NOTHING] - trial->taken[ND_SHARE_NOTHING] / 32;
    for (uint32_t degree = ND_SHARE_NOTHING + 1; degree < ND_DEGREES; degree++) {
        if (trial->taken[degree] >= least) continue;
        least = trial->taken[degree];
        found = degree;
    }
    return found;
}

uint32_t nd_trial_begin(nd_trial *trial) {
    const uint32_t run = trial->runs++;
    trial->degree = fastest(trial);
    if (run < ROUNDS * ND_DEGREES) trial->degree = ND_DEGREES - 1 - run % ND_DEGREES;
    else if (run % APART == 0) trial->degree = run / APART % ND_DEGREES;
    trial->began = nanoseconds();
    return trial->degree;
}

void nd_trial_end(nd_trial *trial) {
    const uint64_t now = nanoseconds() - trial->began;
    uint64_t *taken = &trial->taken[trial->degree];
    /* A run that was interrupted says little; one that was fast shows what is possible. */
    if (*taken == 0 || now < *taken) *taken = now;
    else *taken += (now - *taken) / 16;
}

#endif
