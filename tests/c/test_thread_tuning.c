/* How much of a run is shared: all and nothing are tried, the fastest is times, and the others are
 * looked at again. */
#define _GNU_SOURCE /* clock_gettime */

#include <time.h>

#include "check.h"
#include "thread_tuning.h"

enum { MANY = 20000 };

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A run that takes so many nanoseconds: it began earlier. */
static uint32_t run(nd_tuning *tuning, const uint64_t times[ND_DEGREES]) {
    const uint32_t degree = nd_tuning_begin_run(tuning);
    tuning->began = now() - times[degree];
    nd_tuning_end_run(tuning);
    return degree;
}

/* The degree of most runs when they take so long. */
static uint32_t usual(uint64_t nothing, uint64_t rows, uint64_t all) {
    const uint64_t times[ND_DEGREES] = {nothing, rows, all};
    nd_tuning tuning = {.run = 0};
    uint32_t seen[ND_DEGREES] = {0}, most = 0;
    for (uint32_t at = 0; at < MANY; at++) seen[run(&tuning, times)]++;
    for (uint32_t degree = 0; degree < ND_DEGREES; degree++) {
        CHECK(seen[degree] > 0); /* looked at */
        if (seen[degree] > seen[most]) most = degree;
    }
    CHECK(seen[most] > MANY - MANY / 50);
    return most;
}

static void the_fastest_is_taken(void) {
    CHECK_EQUAL(usual(10000000, 8000000, 6000000), ND_SHARE_ALL);
    CHECK_EQUAL(usual(10000000, 6000000, 8000000), ND_SHARE_ROWS);
    CHECK_EQUAL(usual(10000000, 16000000, 13000000), ND_SHARE_NOTHING);
    CHECK_EQUAL(usual(10000000, 9900000, 9900000), ND_SHARE_NOTHING); /* not worth a thread */
}

/* All and nothing come first, and have been tried after a few runs. */
static void trying_is_short(void) {
    const uint64_t times[ND_DEGREES] = {3000000, 3000000, 2000000};
    nd_tuning tuning = {.run = 0};
    uint32_t seen[ND_DEGREES] = {0};
    for (uint32_t at = 0; at < 4; at++) seen[run(&tuning, times)]++;
    CHECK_EQUAL(seen[ND_SHARE_ALL], 2);
    CHECK_EQUAL(seen[ND_SHARE_NOTHING], 2);
    CHECK_EQUAL(run(&tuning, times), ND_SHARE_ALL);
    const uint64_t rows_fastest[ND_DEGREES] = {3000000, 2000000, 4000000};
    tuning = (nd_tuning){.run = 0};
    for (uint32_t at = 0; at < 6; at++) (void)run(&tuning, rows_fastest);
    for (uint32_t at = 0; at < 5; at++) CHECK_EQUAL(run(&tuning, rows_fastest), ND_SHARE_ROWS);
}

/* The first run of a degree finds threads asleep: it does not count. */
static void first_runs_do_not_count(void) {
    const uint64_t asleep[ND_DEGREES] = {3000000, 3000000, 9000000},
                   awake[ND_DEGREES] = {3000000, 3000000, 2000000};
    nd_tuning tuning = {.run = 0};
    uint32_t before = ND_DEGREES, shared = 0;
    for (uint32_t at = 0; at < 100; at++) {
        const uint32_t degree = nd_tuning_begin_run(&tuning);
        tuning.began = now() - (degree == before ? awake : asleep)[degree];
        nd_tuning_end_run(&tuning);
        shared += degree == ND_SHARE_ALL;
        before = degree;
    }
    CHECK(shared > 70);
}

/* Short runs are repeated until threads that slept are awake. */
static void short_runs_get_time(void) {
    const uint64_t times[ND_DEGREES] = {20000, 20000, 20000};
    nd_tuning tuning = {.run = 0};
    uint32_t all = 0;
    while (run(&tuning, times) == ND_SHARE_ALL && all < 100) all++;
    CHECK(all >= 5 && all < 100);
}

/* Somebody comes who takes the other processor, and goes again. */
static void a_change_is_noticed(void) {
    const uint64_t quiet[ND_DEGREES] = {3000000, 2500000, 2000000},
                   busy[ND_DEGREES] = {3000000, 4500000, 5000000};
    nd_tuning tuning = {.run = 0};
    uint32_t shared = 0;
    for (uint32_t at = 0; at < 3000; at++) (void)run(&tuning, quiet);
    for (uint32_t at = 0; at < 3000; at++) (void)run(&tuning, busy);
    for (uint32_t at = 0; at < 100; at++) shared += run(&tuning, busy) != ND_SHARE_NOTHING;
    CHECK(shared < 50);
    for (uint32_t at = 0; at < 6000; at++) (void)run(&tuning, quiet);
    shared = 0;
    for (uint32_t at = 0; at < 100; at++) shared += run(&tuning, quiet) == ND_SHARE_ALL;
    CHECK(shared > 50);
}

/* Runs that somebody watched, or that broke off, are begun and never ended. */
static void unfinished_runs_do_not_matter(void) {
    const uint64_t times[ND_DEGREES] = {3000000, 2500000, 2000000};
    nd_tuning tuning = {.run = 0};
    uint32_t shared = 0;
    for (uint32_t at = 0; at < 200; at++) {
        (void)nd_tuning_begin_run(&tuning);
        shared += run(&tuning, times) == ND_SHARE_ALL;
    }
    CHECK(shared > 150);
}

int main(void) {
    the_fastest_is_taken();
    trying_is_short();
    first_runs_do_not_count();
    short_runs_get_time();
    a_change_is_noticed();
    unfinished_runs_do_not_matter();
    return check_result();
}
