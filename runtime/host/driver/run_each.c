#include "model.h"
#include "thread_pool.h"

#if ND_THREADS

/* A queue of samples for several handles. */
typedef struct {
    const NeutronModelHandle *handles;
    const NeutronDataConfig *data;
    size_t count;
    atomic_size_t next;
    atomic_size_t failed; /* the first sample that did; `count`: none */
    _Atomic NeutronError error;
    atomic_flag recording;
} samples;

/* The thread of one handle. */
typedef struct {
    samples *all;
    size_t handle;
    nd_thread thread;
} worker;

/* Record the first sample that failed. Samples are taken in order, so all before it have run. */
static void record_failure(samples *all, size_t at, NeutronError error) {
    while (atomic_flag_test_and_set_explicit(&all->recording, memory_order_acquire)) nd_pause();
    if (at < atomic_load(&all->failed)) {
        atomic_store(&all->failed, at);
        atomic_store(&all->error, error);
    }
    atomic_flag_clear_explicit(&all->recording, memory_order_release);
}

static void *run_samples(void *argument) {
    const worker *t = argument;
    samples *all = t->all;
    while (atomic_load(&all->failed) == all->count) {
        const size_t at = atomic_fetch_add(&all->next, 1);
        if (at >= all->count) break;
        const NeutronError error =
            neutronRunBlocking(all->handles[t->handle], &all->data[t->handle * all->count + at]);
        if (error != NEUTRON_NONE) record_failure(all, at, error);
    }
    return NULL;
}

NeutronError neutronRunEach(const NeutronModelHandle *handles, size_t count_of_handles,
                            const NeutronDataConfig *data, size_t count, size_t *done) {
    if (handles == NULL || count_of_handles == 0 || data == NULL || done == NULL)
        return NEUTRON_ERROR_ARGUMENT_NULL;
    samples all = {.handles = handles, .data = data, .count = count, .recording = ATOMIC_FLAG_INIT};
    atomic_init(&all.failed, count);
    worker own = {.all = &all, .handle = 0};
    worker others[ND_MAX_THREADS];
    size_t started = 0;
    while (started + 1 < count_of_handles && started < ND_MAX_THREADS) {
        others[started] = (worker){.all = &all, .handle = started + 1};
        if (!nd_thread_start(&others[started].thread, run_samples, &others[started])) break;
        started++;
    }
    run_samples(&own);
    while (started > 0) nd_thread_join(&others[--started].thread);
    *done = atomic_load(&all.failed);
    return atomic_load(&all.error);
}

#else

NeutronError neutronRunEach(const NeutronModelHandle *handles, size_t count_of_handles,
                            const NeutronDataConfig *data, size_t count, size_t *done) {
    if (handles == NULL || count_of_handles == 0 || data == NULL || done == NULL)
        return NEUTRON_ERROR_ARGUMENT_NULL;
    NeutronError error = NEUTRON_NONE;
    *done = 0;
    while (*done < count && (error = neutronRunBlocking(handles[0], &data[*done])) == NEUTRON_NONE)
        (*done)++;
    return error;
}

#endif
