#define _GNU_SOURCE /* clock_gettime */

#include "trial.h"

#if ND_THREADS
#include <time.h>

/* A look at a degree is so many runs, of which the first does not count, and takes so long: until
 * then a thread that slept is awake. */
enum { LOOK_RUNS = 2, LOOK_NANOSECONDS = 250000 };
/* Runs between two looks: few at first, since a look may have been disturbed, more while nothing
 * changes. On another day, or once a neighbour of this process has gone, another degree may be
 * faster; looking for it should cost less than a hundredth. */
enum { FIRST_APART = 8, MOST_APART = 1024 };

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Of those tried. */
static uint32_t fastest(const nd_trial *trial) {
    uint32_t found = ND_SHARE_NOTHING;
    /* A thread that is asked for little is better left to others. */
    uint64_t least = trial->taken[ND_SHARE_NOTHING] - trial->taken[ND_SHARE_NOTHING] / 32;
    for (uint32_t degree = ND_SHARE_NOTHING + 1; degree < ND_DEGREES; degree++) {
        if (trial->taken[degree] == 0 || trial->taken[degree] >= least) continue;
        least = trial->taken[degree];
        found = degree;
    }
    return found;
}

static void look(nd_trial *trial, uint32_t degree) {
    trial->degree = degree;
    trial->length = LOOK_RUNS;
}

static void stay(nd_trial *trial, uint32_t degree) {
    const bool same = degree == trial->usual && trial->apart != 0;
    const uint32_t more = 2 * trial->apart;
    trial->apart = !same ? FIRST_APART : more < MOST_APART ? more : MOST_APART;
    trial->degree = trial->usual = degree;
    trial->length = trial->apart;
}

/* Runs in a row are over; what comes next? */
static void turn(nd_trial *trial) {
    const uint32_t best = fastest(trial);
    if (trial->taken[ND_SHARE_ALL] == 0) look(trial, ND_SHARE_ALL);
    else if (trial->taken[ND_SHARE_NOTHING] == 0) look(trial, ND_SHARE_NOTHING);
    else if (trial->taken[ND_SHARE_ROWS] == 0 && best == ND_SHARE_NOTHING)
        look(trial, ND_SHARE_ROWS); /* all is too much, perhaps this is not */
    else if (trial->apart == 0 || trial->degree != trial->usual || best != trial->usual)
        stay(trial, best);
    else look(trial, (best + 1 + trial->looks++ % (ND_DEGREES - 1)) % ND_DEGREES);
    trial->row = 0;
    trial->spent = trial->best = 0;
}

uint32_t nd_trial_begin(nd_trial *trial) {
    if (trial->row >= trial->length && (trial->best != 0 || trial->length == 0)) turn(trial);
    trial->row++;
    trial->began = nanoseconds();
    return trial->degree;
}

void nd_trial_end(nd_trial *trial) {
    const uint64_t now = nanoseconds() - trial->began;
    trial->spent += now;
    if (trial->row > 1 && (trial->best == 0 || now < trial->best)) trial->best = now | 1;
    if (trial->row < trial->length || trial->best == 0) return;
    if (trial->spent < LOOK_NANOSECONDS) trial->length++;
    else trial->taken[trial->degree] = trial->best;
}

#endif
