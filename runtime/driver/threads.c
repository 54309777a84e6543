#define _GNU_SOURCE /* sched_getaffinity */

#include "threads.h"

#if ND_THREADS
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "neutron.h"

/* Looks at a word of memory before a thread goes to sleep, some 30 microseconds: as long as waking
 * it would take, and several times what lies between two shared calls of a run. */
enum { LOOKS = 1500 };

/* The job in hand as one word, so that nobody takes a part of a later job for one of an earlier:
 * its number, and below it one bit for each part that nobody has taken. */
enum { NUMBER_BIT = 32 };
_Static_assert((int)ND_MAX_PARTS <= (int)NUMBER_BIT, "a job has at most so many parts");

/* What many threads write has a line of the cache to itself. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct nd_pool {
    _Atomic uint64_t word;
    nd_part part; /* these two change only while no part is left to take or under way */
    void *job;
    atomic_uint parts;             /* of the job; who sees another job's takes none of this one */
    _Alignas(64) atomic_uint left; /* parts not yet done */
    _Alignas(64) atomic_uint asleep;
    atomic_uint numbers; /* given to threads: the caller is 0 */
    atomic_uint calls;   /* how often sleepers were woken without a job */
    atomic_bool closing, waiting;
    uint32_t looks;
    nd_trial trial;
    pthread_mutex_t lock; /* held by whoever goes to sleep, and by whoever wakes */
    pthread_cond_t begun, finished;
    uint32_t threads; /* started, the caller's not counted */
    pthread_t ids[ND_MAX_THREADS];
};

static uint32_t parts_of(uint64_t word) { return (uint32_t)word; }

/* The part of those left that thread `mine` takes. Two neighbours have a stretch of the parts
 * between them: one goes up from its first, the other down from its last, until they meet. So calls
 * that follow each other find in the cache of each thread what it made. */
static uint32_t chosen(const nd_pool *pool, uint32_t left, uint32_t mine) {
    const uint32_t pairs = pool->threads / 2 + 1, pair = mine / 2;
    const uint32_t parts = atomic_load_explicit(&pool->parts, memory_order_relaxed);
    const uint32_t first = parts * pair / pairs, end = parts * (pair + 1) / pairs;
    const uint32_t near = left & (uint32_t)(((UINT64_C(1) << end) - 1) >> first << first);
    const uint32_t from = near ? near : left;
    return (uint32_t)(mine % 2 ? 31 - __builtin_clz(from) : __builtin_ctz(from));
}

/* A part that nobody has taken; false: none is left. */
static bool take(nd_pool *pool, uint32_t mine, uint32_t *part) {
    uint64_t word = atomic_load_explicit(&pool->word, memory_order_acquire);
    while (parts_of(word) != 0) {
        *part = chosen(pool, parts_of(word), mine);
        if (atomic_compare_exchange_weak_explicit(&pool->word, &word,
                                                  word & ~(UINT64_C(1) << *part),
                                                  memory_order_acquire, memory_order_acquire))
            return true;
    }
    return false;
}

static void wake(nd_pool *pool, pthread_cond_t *condition) {
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(condition);
    pthread_mutex_unlock(&pool->lock);
}

static void do_part(nd_pool *pool, uint32_t part) {
    pool->part(pool->job, part);
    if (atomic_fetch_sub(&pool->left, 1) == 1 && atomic_load(&pool->waiting))
        wake(pool, &pool->finished);
}

/* Either the sleeper sees the new word, or whoever wrote it sees the sleeper: both are written
 * before the other is read, in one order for all. */
static void nap(nd_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->asleep, 1);
    const unsigned calls = atomic_load(&pool->calls);
    while (!atomic_load(&pool->closing) && parts_of(atomic_load(&pool->word)) == 0 &&
           atomic_load(&pool->calls) == calls)
        pthread_cond_wait(&pool->begun, &pool->lock);
    atomic_fetch_sub(&pool->asleep, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *serve(void *argument) {
    nd_pool *pool = argument;
    const uint32_t mine = atomic_fetch_add(&pool->numbers, 1) + 1;
    uint32_t part, looked = 0;
    while (!atomic_load_explicit(&pool->closing, memory_order_relaxed)) {
        if (take(pool, mine, &part)) {
            do_part(pool, part);
            looked = 0;
        } else if (looked++ < pool->looks) {
            nd_pause();
        } else {
            nap(pool);
            looked = 0;
        }
    }
    return NULL;
}

/* Processors that this process may use. */
static uint32_t processors(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return (uint32_t)CPU_COUNT(&set);
#endif
    const long found = sysconf(_SC_NPROCESSORS_ONLN);
    return found > 0 ? (uint32_t)found : 1;
}

nd_pool *nd_pool_make(uint32_t threads) {
    nd_pool *pool = neutronMemAlloc(_Alignof(nd_pool), sizeof *pool);
    if (pool == NULL) return NULL;
    memset(pool, 0, sizeof *pool);
    /* Threads that look for work keep a processor from those that have some. */
    pool->looks = threads <= processors() ? LOOKS : 0;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->begun, NULL);
    pthread_cond_init(&pool->finished, NULL);
    while (pool->threads + 1 < threads &&
           pthread_create(&pool->ids[pool->threads], NULL, serve, pool) == 0) {
        pool->threads++;
    }
    if (pool->threads + 1 == threads) return pool;
    nd_pool_free(pool);
    return NULL;
}

void nd_pool_free(nd_pool *pool) {
    if (pool == NULL) return;
    atomic_store(&pool->closing, true);
    wake(pool, &pool->begun);
    for (uint32_t at = 0; at < pool->threads; at++) pthread_join(pool->ids[at], NULL);
    pthread_cond_destroy(&pool->begun);
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->lock);
    neutronMemFree(pool);
}

uint32_t nd_pool_threads(const nd_pool *pool) { return pool ? pool->threads + 1 : 1; }

nd_trial *nd_pool_trial(nd_pool *pool) { return &pool->trial; }

void nd_pool_wake(nd_pool *pool) {
    atomic_fetch_add(&pool->calls, 1);
    if (atomic_load(&pool->asleep)) wake(pool, &pool->begun);
}

/* Until every part is done: those that others took. */
static void wait_for_parts(nd_pool *pool) {
    for (uint32_t looked = 0; looked < pool->looks; looked++) {
        if (atomic_load_explicit(&pool->left, memory_order_acquire) == 0) return;
        nd_pause();
    }
    pthread_mutex_lock(&pool->lock);
    /* An exchange, for either this thread sees the last part done, or whoever does it sees this one
     * wait. qemu-aarch64 lets a load overtake a store in front of it, also where both are in one
     * order for all. */
    atomic_exchange(&pool->waiting, true);
    while (atomic_load(&pool->left) != 0) pthread_cond_wait(&pool->finished, &pool->lock);
    atomic_store(&pool->waiting, false);
    pthread_mutex_unlock(&pool->lock);
}

void nd_pool_run(nd_pool *pool, nd_part part, void *job, uint32_t parts) {
    const uint64_t last = atomic_load_explicit(&pool->word, memory_order_relaxed);
    uint32_t taken;
    pool->part = part;
    pool->job = job;
    atomic_store_explicit(&pool->parts, parts, memory_order_relaxed);
    atomic_store_explicit(&pool->left, parts, memory_order_relaxed);
    /* The first part is the caller's: two threads that take at once would wait for each other. */
    atomic_store(&pool->word,
                 ((last >> NUMBER_BIT) + 1) << NUMBER_BIT | ((UINT64_C(1) << parts) - 2));
    if (atomic_load(&pool->asleep)) wake(pool, &pool->begun);
    do_part(pool, 0);
    while (take(pool, 0, &taken)) do_part(pool, taken);
    wait_for_parts(pool);
}

uint32_t nd_threads_wanted(void) {
    const char *text = getenv("OPENNEUTRON_THREADS");
    if (text == NULL || *text == 0) return 1;
    char *end = NULL;
    const long wanted = strtol(text, &end, 10);
    return *end == 0 && wanted >= 1 && wanted <= ND_MAX_THREADS ? (uint32_t)wanted : 0;
}

#endif
