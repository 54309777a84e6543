#include "model.h"

#if ND_THREADS
#include <string.h>

/* A handle is not an address: its low bits are an index into a table, the others the generation of
 * that entry. Freeing a model starts the next generation, so a stale handle is recognised without
 * reading freed memory. */
enum { PLACE_BITS = 16, CHUNK = 256, CHUNKS = (1 << PLACE_BITS) / CHUNK };

typedef struct {
    struct NeutronModel *model; /* NULL: free */
    uintptr_t generation;
    uint32_t users; /* calls that are using the model */
} place;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below */
static place first_chunk[CHUNK];
static place *chunks[CHUNKS] = {first_chunk};

static place *place_of(NeutronModelHandle handle) {
    const uintptr_t value = (uintptr_t)handle, at = value & ((1u << PLACE_BITS) - 1);
    place *chunk = chunks[at / CHUNK];
    if (chunk == NULL) return NULL;
    place *found = &chunk[at % CHUNK];
    return found->model != NULL && found->generation == value >> PLACE_BITS ? found : NULL;
}

/* Find a free entry, in a new chunk when all are used; NULL without memory. */
static place *free_place(uintptr_t *at) {
    for (uintptr_t c = 0; c < CHUNKS; c++) {
        if (chunks[c] == NULL) {
            chunks[c] = neutronMemAlloc(_Alignof(place), CHUNK * sizeof(place));
            if (chunks[c] == NULL) return NULL;
            memset(chunks[c], 0, CHUNK * sizeof(place));
        }
        for (uintptr_t i = 0; i < CHUNK; i++) {
            *at = c * CHUNK + i;
            if (chunks[c][i].model == NULL) return &chunks[c][i];
        }
    }
    return NULL;
}

NeutronModelHandle nd_handle_make(struct NeutronModel *model) {
    uintptr_t at = 0;
    pthread_mutex_lock(&lock);
    place *found = free_place(&at);
    if (found != NULL) {
        found->model = model;
        found->generation = (found->generation + 1) & (UINTPTR_MAX >> PLACE_BITS);
        if (found->generation == 0) found->generation = 1; /* a handle is never NULL */
        found->users = 0;
        model->handle = (NeutronModelHandle)(found->generation << PLACE_BITS | at);
    }
    pthread_mutex_unlock(&lock);
    return found != NULL ? model->handle : NULL;
}

NeutronError nd_enter(NeutronModelHandle handle, struct NeutronModel **model) {
    if (handle == NULL) return NEUTRON_ERROR_NULL_HANDLE;
    pthread_mutex_lock(&lock);
    place *found = place_of(handle);
    if (found != NULL) {
        found->users++;
        *model = found->model;
    }
    pthread_mutex_unlock(&lock);
    return found != NULL ? NEUTRON_NONE : NEUTRON_ERROR_STALE_HANDLE;
}

void nd_leave(struct NeutronModel *model) {
    pthread_mutex_lock(&lock);
    place_of(model->handle)->users--;
    pthread_mutex_unlock(&lock);
}

NeutronError nd_handle_end(struct NeutronModel *model) {
    pthread_mutex_lock(&lock);
    place *found = place_of(model->handle);
    const bool alone = found->users == 1; /* the caller */
    if (alone) found->model = NULL;
    pthread_mutex_unlock(&lock);
    return alone ? NEUTRON_NONE : NEUTRON_ERROR_BUSY;
}

#else

/* A context is the application's memory, which outlives the model: a mark in it is enough. */
#define LIVE 0x4C4E4F4Du /* "MONL": anything that zeroed or foreign memory is not */

NeutronModelHandle nd_handle_make(struct NeutronModel *model) {
    model->live = LIVE;
    model->handle = model;
    return model;
}

NeutronError nd_enter(NeutronModelHandle handle, struct NeutronModel **model) {
    if (handle == NULL) return NEUTRON_ERROR_NULL_HANDLE;
    if (handle->live != LIVE) return NEUTRON_ERROR_STALE_HANDLE;
    *model = handle;
    return NEUTRON_NONE;
}

void nd_leave(struct NeutronModel *model) { (void)model; }

NeutronError nd_handle_end(struct NeutronModel *model) {
    model->live = 0;
    return NEUTRON_NONE;
}

#endif

/* Change the state; false when it is no longer `from`. */
bool nd_change_state(struct NeutronModel *model, int from, int to) {
    return atomic_compare_exchange_strong_explicit(&model->state, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

NeutronError nd_claim(NeutronModelHandle handle, struct NeutronModel **model) {
    const NeutronError error = nd_enter(handle, model);
    if (error != NEUTRON_NONE || nd_change_state(*model, ND_IDLE, ND_CLAIMED)) return error;
    nd_leave(*model);
    return NEUTRON_ERROR_BUSY;
}

void nd_release(struct NeutronModel *model) {
    atomic_store_explicit(&model->state, ND_IDLE, memory_order_release);
    nd_leave(model);
}
