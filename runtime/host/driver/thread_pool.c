#define _GNU_SOURCE /* sched_getaffinity */

#include "thread_pool.h"

#if ND_THREADS
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "neutron.h"

/* Spins before a thread goes to sleep, some 30 microseconds: as long as waking it takes, and
 * several times the pause between two shared calls of a run. */
enum { SPIN_COUNT = 1500 };

/* The current job as one word, so that a thread cannot take a part of a later job by mistake: the
 * job's number, and below it one bit for each part that is not taken. */
enum { NUMBER_BIT = 32 };
_Static_assert((int)ND_MAX_PARTS <= (int)NUMBER_BIT, "a job has at most so many parts");

/* Fields that many threads write have a cache line of their own. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct nd_pool {
    _Atomic uint64_t word;
    nd_part part; /* these two change only while no part is pending or running */
    void *job;
    atomic_uint parts;             /* of the job */
    _Alignas(64) atomic_uint left; /* parts not yet done */
    _Alignas(64) atomic_uint asleep;
    atomic_uint numbers;  /* next thread number; the caller is 0 */
    atomic_uint wake_ups; /* wake-ups without a job */
    atomic_bool closing, waiting;
    uint32_t spin_count;
    nd_tuning tuning;
    pthread_mutex_t lock; /* taken to go to sleep and to wake others */
    pthread_cond_t job_ready, job_done;
    uint32_t threads; /* started, the caller's not counted */
    pthread_t ids[ND_MAX_THREADS];
};

static uint32_t parts_of(uint64_t word) { return (uint32_t)word; }

/* Choose the part that thread `mine` takes. Two neighbouring threads share a range of parts: one
 * goes up from its start, the other down from its end. So the parts of consecutive calls find their
 * data in the cache of the thread that wrote it. */
static uint32_t choose_part(const nd_pool *pool, uint32_t left, uint32_t mine) {
    const uint32_t pairs = pool->threads / 2 + 1, pair = mine / 2;
    const uint32_t parts = atomic_load_explicit(&pool->parts, memory_order_relaxed);
    const uint32_t first = parts * pair / pairs, end = parts * (pair + 1) / pairs;
    const uint32_t near = left & (uint32_t)(((UINT64_C(1) << end) - 1) >> first << first);
    const uint32_t from = near ? near : left;
    return (uint32_t)(mine % 2 ? 31 - __builtin_clz(from) : __builtin_ctz(from));
}

/* Take a part; false when none is left. */
static bool take(nd_pool *pool, uint32_t mine, uint32_t *part) {
    uint64_t word = atomic_load_explicit(&pool->word, memory_order_acquire);
    while (parts_of(word) != 0) {
        *part = choose_part(pool, parts_of(word), mine);
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

static void run_part(nd_pool *pool, uint32_t part) {
    pool->part(pool->job, part);
    if (atomic_fetch_sub(&pool->left, 1) == 1 && atomic_load(&pool->waiting))
        wake(pool, &pool->job_done);
}

/* Both sides write before they read, in one total order: either this thread sees the new word, or
 * the thread that wrote it sees this one asleep. */
static void sleep_until_woken(nd_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->asleep, 1);
    const unsigned wake_ups = atomic_load(&pool->wake_ups);
    while (!atomic_load(&pool->closing) && parts_of(atomic_load(&pool->word)) == 0 &&
           atomic_load(&pool->wake_ups) == wake_ups)
        pthread_cond_wait(&pool->job_ready, &pool->lock);
    atomic_fetch_sub(&pool->asleep, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *run_worker(void *argument) {
    nd_pool *pool = argument;
    const uint32_t mine = atomic_fetch_add(&pool->numbers, 1) + 1;
    uint32_t part, spins = 0;
    while (!atomic_load_explicit(&pool->closing, memory_order_relaxed)) {
        if (take(pool, mine, &part)) {
            run_part(pool, part);
            spins = 0;
        } else if (spins++ < pool->spin_count) {
            nd_pause();
        } else {
            sleep_until_woken(pool);
            spins = 0;
        }
    }
    return NULL;
}

/* Number of processors that this process may use. */
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
    /* With more threads than processors, spinning would delay the working threads. */
    pool->spin_count = threads <= processors() ? SPIN_COUNT : 0;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->job_ready, NULL);
    pthread_cond_init(&pool->job_done, NULL);
    while (pool->threads + 1 < threads &&
           pthread_create(&pool->ids[pool->threads], NULL, run_worker, pool) == 0) {
        pool->threads++;
    }
    if (pool->threads + 1 == threads) return pool;
    nd_pool_free(pool);
    return NULL;
}

void nd_pool_free(nd_pool *pool) {
    if (pool == NULL) return;
    atomic_store(&pool->closing, true);
    wake(pool, &pool->job_ready);
    for (uint32_t at = 0; at < pool->threads; at++) pthread_join(pool->ids[at], NULL);
    pthread_cond_destroy(&pool->job_ready);
    pthread_cond_destroy(&pool->job_done);
    pthread_mutex_destroy(&pool->lock);
    neutronMemFree(pool);
}

uint32_t nd_pool_threads(const nd_pool *pool) { return pool ? pool->threads + 1 : 1; }

nd_tuning *nd_pool_tuning(nd_pool *pool) { return &pool->tuning; }

void nd_pool_wake(nd_pool *pool) {
    atomic_fetch_add(&pool->wake_ups, 1);
    if (atomic_load(&pool->asleep)) wake(pool, &pool->job_ready);
}

/* Wait until every part is done, including those of other threads. */
static void wait_for_parts(nd_pool *pool) {
    for (uint32_t spins = 0; spins < pool->spin_count; spins++) {
        if (atomic_load_explicit(&pool->left, memory_order_acquire) == 0) return;
        nd_pause();
    }
    pthread_mutex_lock(&pool->lock);
    /* An exchange, so that either this thread sees the last part done, or the thread that does it
     * sees this one waiting. qemu-aarch64 lets a load overtake a preceding store even where both
     * are sequentially consistent. */
    atomic_exchange(&pool->waiting, true);
    while (atomic_load(&pool->left) != 0) pthread_cond_wait(&pool->job_done, &pool->lock);
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
    /* The first part is reserved for the caller: threads that take at once would contend. */
    atomic_store(&pool->word,
                 ((last >> NUMBER_BIT) + 1) << NUMBER_BIT | ((UINT64_C(1) << parts) - 2));
    if (atomic_load(&pool->asleep)) wake(pool, &pool->job_ready);
    run_part(pool, 0);
    while (take(pool, 0, &taken)) run_part(pool, taken);
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
