#include "threads.h"

#if ND_THREADS
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "neutron.h"

struct nd_pool {
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t begun, finished;
    nd_part part;
    void *job;
    uint32_t parts, taken, left; /* of the job in hand; none is in hand when taken == parts */
    bool closing;
    uint32_t threads; /* started, the caller's not counted */
    pthread_t ids[ND_MAX_THREADS];
};

/* Work on the job in hand until every part is taken. Called and left with the lock held. */
static void take_parts(nd_pool *pool) {
    while (pool->taken < pool->parts) {
        const uint32_t part = pool->taken++;
        pthread_mutex_unlock(&pool->lock);
        pool->part(pool->job, part);
        pthread_mutex_lock(&pool->lock);
        if (--pool->left == 0) pthread_cond_signal(&pool->finished);
    }
}

static void *serve(void *argument) {
    nd_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        take_parts(pool);
        if (!pool->closing) pthread_cond_wait(&pool->begun, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

nd_pool *nd_pool_make(uint32_t threads) {
    nd_pool *pool = neutronMemAlloc(_Alignof(nd_pool), sizeof *pool);
    if (pool == NULL) return NULL;
    memset(pool, 0, sizeof *pool);
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
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->begun);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t at = 0; at < pool->threads; at++) pthread_join(pool->ids[at], NULL);
    pthread_cond_destroy(&pool->begun);
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->lock);
    neutronMemFree(pool);
}

uint32_t nd_pool_threads(const nd_pool *pool) { return pool ? pool->threads + 1 : 1; }

void nd_pool_run(nd_pool *pool, nd_part part, void *job, uint32_t parts) {
    pthread_mutex_lock(&pool->lock);
    pool->part = part;
    pool->job = job;
    pool->taken = 0;
    pool->parts = pool->left = parts;
    pthread_cond_broadcast(&pool->begun);
    take_parts(pool);
    while (pool->left) pthread_cond_wait(&pool->finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

uint32_t nd_threads_wanted(void) {
    const char *text = getenv("OPENNEUTRON_THREADS");
    if (text == NULL || *text == 0) return 1;
    char *end = NULL;
    const long wanted = strtol(text, &end, 10);
    return *end == 0 && wanted >= 1 && wanted <= ND_MAX_THREADS ? (uint32_t)wanted : 0;
}

#endif
