/* A few threads that wait for work of one model; hosts only. */
#ifndef ND_POOL_H
#define ND_POOL_H

#include <stdint.h>

#include "platform.h"
#include "trial.h"

typedef struct nd_pool nd_pool;

#if ND_THREADS

/* More would share the rows of small images into slivers. */
enum { ND_MAX_THREADS = 16 };
/* Of one job. */
enum { ND_MAX_PARTS = 32 };

/* One part of a job; parts run at once, in no particular order. */
typedef void (*nd_part)(void *job, uint32_t part);

/* A pool in which `threads` parts run at once, the caller's thread included; NULL when the system
 * refuses. */
nd_pool *nd_pool_make(uint32_t threads);
/* `pool` may be NULL. No job may be running. */
void nd_pool_free(nd_pool *pool);
/* 1 for NULL. */
uint32_t nd_pool_threads(const nd_pool *pool);
/* What its runs have shown; of whoever runs them. */
nd_trial *nd_pool_trial(nd_pool *pool);
/* A run begins: threads that sleep get up and look for its jobs. */
void nd_pool_wake(nd_pool *pool);
/* Run parts 0 … parts - 1 of a job and return when all are done. One caller at a time. */
void nd_pool_run(nd_pool *pool, nd_part part, void *job, uint32_t parts);
/* What OPENNEUTRON_THREADS says, 1 when it says nothing, 0 when it is no number from 1 to
 * ND_MAX_THREADS. */
uint32_t nd_threads_wanted(void);

#endif
#endif
