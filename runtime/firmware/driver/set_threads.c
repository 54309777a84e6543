#include "model.h"

#if ND_THREADS
#include "thread_pool.h"

static NeutronError set_threads(struct NeutronModel *model, uint32_t threads) {
    if (threads < 1 || threads > ND_MAX_THREADS) return NEUTRON_ERROR_THREADS;
    nd_pool *pool = threads > 1 ? nd_pool_make(threads) : NULL;
    if (threads > 1 && pool == NULL) return NEUTRON_ERROR_NO_THREAD;
    nd_pool_free(model->pool);
    model->pool = pool;
    return NEUTRON_NONE;
}
#else
static NeutronError set_threads(struct NeutronModel *model, uint32_t threads) {
    (void)model;
    return threads == 1 ? NEUTRON_NONE : NEUTRON_ERROR_THREADS;
}
#endif

NeutronError neutronSetThreads(NeutronModelHandle handle, uint32_t threads) {
    struct NeutronModel *model;
    NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = set_threads(model, threads);
    nd_release(model);
    return error;
}
