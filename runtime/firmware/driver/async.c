#include "model.h"

NeutronError neutronRunBlocking(NeutronModelHandle handle, const NeutronDataConfig *data) {
    struct NeutronModel *model;
    NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = nd_run(model, data);
    nd_release(model);
    return error;
}

static void *work(void *argument) {
    struct NeutronModel *model = argument;
    model->result = nd_run(model, &model->data);
    atomic_store_explicit(&model->finished, true, memory_order_release);
    return NULL;
}

static NeutronError start(struct NeutronModel *model, const NeutronDataConfig *data) {
    nd_buffers buffers;
    if (nd_suspended()) return NEUTRON_ERROR_SUSPENDED;
    const NeutronError error = nd_check_buffers(model, data, &buffers);
    if (error != NEUTRON_NONE) return error;
    model->data = *data;
    atomic_store_explicit(&model->finished, false, memory_order_relaxed);
    return nd_thread_start(&model->thread, work, model) ? NEUTRON_NONE : NEUTRON_ERROR_NO_THREAD;
}

NeutronError neutronRunNonBlocking(NeutronModelHandle handle, const NeutronDataConfig *data) {
    struct NeutronModel *model;
    NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = start(model, data);
    if (error != NEUTRON_NONE) {
        nd_release(model);
        return error;
    }
    /* Only now may anybody wait: the thread's identity is written. */
    atomic_store_explicit(&model->state, ND_RUNNING, memory_order_release);
    nd_leave(model);
    return NEUTRON_NONE;
}

static bool finished(struct NeutronModel *model) {
    if (!ND_THREADS && !atomic_load_explicit(&model->finished, memory_order_acquire)) work(model);
    return atomic_load_explicit(&model->finished, memory_order_acquire);
}

static NeutronError is_ready(struct NeutronModel *model, bool *ready) {
    const int state = atomic_load_explicit(&model->state, memory_order_acquire);
    if (ready == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if (state == ND_IDLE) return NEUTRON_ERROR_NOT_STARTED;
    if (state == ND_CLAIMED) return NEUTRON_ERROR_BUSY;
    *ready = finished(model);
    return NEUTRON_NONE;
}

NeutronError neutronIsReady(NeutronModelHandle handle, bool *ready) {
    struct NeutronModel *model;
    NeutronError error = nd_enter(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = is_ready(model, ready);
    nd_leave(model);
    return error;
}

NeutronError nd_wait(struct NeutronModel *model, const NeutronDataConfig *data) {
    if (!nd_change_state(model, ND_RUNNING, ND_JOINING)) {
        const int state = atomic_load_explicit(&model->state, memory_order_acquire);
        return state == ND_IDLE ? NEUTRON_ERROR_NOT_STARTED : NEUTRON_ERROR_BUSY;
    }
    const bool same = data == NULL ||
                      (data->inputs == model->data.inputs && data->outputs == model->data.outputs);
    if (!same) {
        atomic_store_explicit(&model->state, ND_RUNNING, memory_order_release);
        return NEUTRON_ERROR_DATA_CHANGED;
    }
    if (!ND_THREADS) (void)finished(model);
    nd_thread_join(&model->thread);
    const NeutronError result = model->result; /* the next run may write it once it is IDLE */
    atomic_store_explicit(&model->state, ND_IDLE, memory_order_release);
    return result;
}

NeutronError neutronWait(NeutronModelHandle handle, const NeutronDataConfig *data) {
    struct NeutronModel *model;
    NeutronError error = nd_enter(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = nd_wait(model, data);
    nd_leave(model);
    return error;
}
