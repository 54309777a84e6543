#include "model.h"

NeutronError neutronRunBlocking(NeutronModelHandle handle, const NeutronDataConfig *data) {
    const NeutronError error = nd_idle_error(handle);
    return error == NEUTRON_NONE ? nd_run(handle, data) : error;
}

static void *work(void *argument) {
    struct NeutronModel *model = argument;
    model->result = nd_run(model, &model->data);
    atomic_store_explicit(&model->state, ND_DONE, memory_order_release);
    return NULL;
}

NeutronError neutronRunNonBlocking(NeutronModelHandle handle, const NeutronDataConfig *data) {
    nd_buffers buffers;
    NeutronError error = nd_idle_error(handle);
    if (error == NEUTRON_NONE && nd_suspended()) error = NEUTRON_ERROR_SUSPENDED;
    if (error == NEUTRON_NONE) error = nd_check_buffers(handle, data, &buffers);
    if (error != NEUTRON_NONE) return error;
    handle->data = *data;
    atomic_store_explicit(&handle->state, ND_RUNNING, memory_order_release);
    if (nd_thread_start(&handle->thread, work, handle)) return NEUTRON_NONE;
    atomic_store_explicit(&handle->state, ND_IDLE, memory_order_release);
    return NEUTRON_ERROR_NO_THREAD;
}

static int state_of(struct NeutronModel *model) {
    return atomic_load_explicit(&model->state, memory_order_acquire);
}

NeutronError neutronIsReady(NeutronModelHandle handle, bool *ready) {
    const NeutronError error = nd_handle_error(handle);
    if (error != NEUTRON_NONE) return error;
    if (ready == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if (state_of(handle) == ND_IDLE) return NEUTRON_ERROR_NOT_STARTED;
    if (!ND_THREADS && state_of(handle) == ND_RUNNING) work(handle);
    *ready = state_of(handle) == ND_DONE;
    return NEUTRON_NONE;
}

NeutronError neutronWait(NeutronModelHandle handle, const NeutronDataConfig *data) {
    const NeutronError error = nd_handle_error(handle);
    if (error != NEUTRON_NONE) return error;
    if (state_of(handle) == ND_IDLE) return NEUTRON_ERROR_NOT_STARTED;
    if (data != NULL &&
        (data->inputs != handle->data.inputs || data->outputs != handle->data.outputs)) {
        return NEUTRON_ERROR_DATA_CHANGED;
    }
    if (!ND_THREADS && state_of(handle) == ND_RUNNING) work(handle);
    nd_thread_join(&handle->thread);
    atomic_store_explicit(&handle->state, ND_IDLE, memory_order_release);
    return handle->result;
}
