/* Differences between hosts and bare metal: clock, heap, threads. */
#ifndef ND_PLATFORM_H
#define ND_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "nd_features.h"

#if (defined(__unix__) || defined(__APPLE__)) && !defined(NEUTRON_NO_THREADS)
#define ND_THREADS 1
#include <pthread.h>
typedef struct {
    pthread_t id;
} nd_thread;
#else
#define ND_THREADS 0
typedef struct {
    uint8_t none;
} nd_thread;
#endif

/* Pause between two reads of memory that another thread writes. */
static inline void nd_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Milliseconds of a clock that only goes forward. Weak: an image with a timer defines its own;
 * without one the clock stands still and time-outs never come. */
uint64_t neutronClockMilliseconds(void);

/* Start `work(argument)` on a new thread; false when the system refuses. Without threads: always
 * true, and `work` runs when the caller of nd_thread_join runs it. */
bool nd_thread_start(nd_thread *thread, void *(*work)(void *), void *argument);
void nd_thread_join(nd_thread *thread);

#endif
