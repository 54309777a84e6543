#define _GNU_SOURCE /* CLOCK_MONOTONIC_COARSE */

#include "platform.h"

#include "neutron.h"

#if defined(__unix__) || defined(__APPLE__)
#include <time.h>

__attribute__((weak)) uint64_t neutronClockMilliseconds(void) {
    struct timespec now;
#if defined(CLOCK_MONOTONIC_COARSE) && !defined(__EMSCRIPTEN__) /* which names it and has none */
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now); /* a few ns, and looked at in every instruction */
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
#else
__attribute__((weak)) uint64_t neutronClockMilliseconds(void) { return 0; }
#endif

#if ND_THREADS
bool nd_thread_start(nd_thread *thread, void *(*work)(void *), void *argument) {
    return pthread_create(&thread->id, NULL, work, argument) == 0;
}

void nd_thread_join(nd_thread *thread) { pthread_join(thread->id, NULL); }
#else
bool nd_thread_start(nd_thread *thread, void *(*work)(void *), void *argument) {
    (void)thread, (void)work, (void)argument;
    return true;
}

void nd_thread_join(nd_thread *thread) { (void)thread; }
#endif

#if defined(NEUTRON_NO_HEAP)
void *neutronMemAlloc(size_t alignment, size_t size) {
    (void)alignment, (void)size;
    return NULL;
}

void neutronMemFree(void *pointer) { (void)pointer; }
#else
#include <stdlib.h>

void *neutronMemAlloc(size_t alignment, size_t size) {
    const size_t step = alignment < sizeof(void *) ? sizeof(void *) : alignment;
    if ((step & (step - 1)) != 0 || size > SIZE_MAX - step) return NULL;
    return aligned_alloc(step, (size / step + 1) * step);
}

void neutronMemFree(void *pointer) { free(pointer); }
#endif
