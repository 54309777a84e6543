/* How much of a run is shared: every degree has its turns, then the fastest is taken, and the
 * others are looked at again. */
#include "check.h"
#include "trial.h"

enum { MANY = 4096 };

static void every_degree_has_its_turns(void) {
    nd_trial trial = {.runs = 0};
    uint32_t seen[ND_DEGREES] = {0};
    for (uint32_t run = 0; run < 3 * ND_DEGREES; run++) {
        seen[nd_trial_begin(&trial)]++;
        nd_trial_end(&trial);
    }
    for (uint32_t degree = 0; degree < ND_DEGREES; degree++) {
        CHECK_EQUAL(seen[degree], 3);
        CHECK(trial.taken[degree] > 0);
    }
}

/* The degree of most runs when they take so long. */
static uint32_t usual(uint64_t nothing, uint64_t large, uint64_t all) {
    nd_trial trial = {.taken = {nothing, large, all}, .runs = MANY};
    uint32_t seen[ND_DEGREES] = {0}, most = 0;
    for (uint32_t run = 0; run < MANY; run++) seen[nd_trial_begin(&trial)]++;
    for (uint32_t degree = 0; degree < ND_DEGREES; degree++) {
        CHECK(seen[degree] > 0); /* looked at again */
        if (seen[degree] > seen[most]) most = degree;
    }
    CHECK(seen[most] > MANY - MANY / 64);
    return most;
}

static void the_fastest_is_taken(void) {
    CHECK_EQUAL(usual(1000, 800, 600), ND_SHARE_ALL);
    CHECK_EQUAL(usual(1000, 600, 800), ND_SHARE_LARGE);
    CHECK_EQUAL(usual(1000, 1600, 1300), ND_SHARE_NOTHING);
    CHECK_EQUAL(usual(1000, 999, 998), ND_SHARE_NOTHING); /* not worth a thread */
}

static void slow_runs_are_believed_slowly(void) {
    nd_trial trial = {.taken = {1, 1, 1}, .degree = ND_SHARE_ALL}; /* began long ago */
    nd_trial_end(&trial);
    CHECK(trial.taken[ND_SHARE_ALL] > 1);
    const uint64_t once = trial.taken[ND_SHARE_ALL];
    nd_trial_end(&trial);
    CHECK(trial.taken[ND_SHARE_ALL] > once && trial.taken[ND_SHARE_ALL] < 3 * once);
    trial.taken[ND_SHARE_ALL] = UINT64_MAX;
    nd_trial_end(&trial); /* a fast one at once */
    CHECK(trial.taken[ND_SHARE_ALL] < UINT64_MAX / 16);
    CHECK_EQUAL(trial.taken[ND_SHARE_NOTHING], 1);
}

int main(void) {
    every_degree_has_its_turns();
    the_fastest_is_taken();
    slow_runs_are_believed_slowly();
    return check_result();
}
