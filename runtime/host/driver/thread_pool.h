/* A thread pool of one model. */
#ifndef ND_POOL_H
#define ND_POOL_H

#include <stdint.h>

#include "platform.h"
#include "thread_tuning.h"

typedef struct nd_pool nd_pool;

#if ND_THREADS

/* More threads would cut the rows of small images too thin. */
enum { ND_MAX_THREADS = 16 };
/* Parts of one job. */
enum { ND_MAX_PARTS = 32 };

/* Computes one part of a job. Parts run concurrently, in no particular order. */
typedef void (*nd_part)(void *job, uint32_t part);

/* Start a pool that runs `threads` parts at once, one of them on the calling thread; NULL when the
 * system refuses a thread. */
nd_pool *nd_pool_make(uint32_t threads);
/* Stop the threads and free the pool, which may be NULL. No job may be running. */
void nd_pool_free(nd_pool *pool);
/* Number of threads, the caller's included; 1 for NULL. */
uint32_t nd_pool_threads(const nd_pool *pool);
/* The measurements of the model's runs. */
nd_tuning *nd_pool_tuning(nd_pool *pool);
/* Wake sleeping threads at the start of a run. */
void nd_pool_wake(nd_pool *pool);
/* Run parts 0 … parts - 1 of a job and return when all are done. One caller at a time. */
void nd_pool_run(nd_pool *pool, nd_part part, void *job, uint32_t parts);
/* The value of OPENNEUTRON_THREADS; 1 when it is not set, 0 when it is no number from 1 to
 * ND_MAX_THREADS. */
uint32_t nd_threads_wanted(void);

#endif
#endif
