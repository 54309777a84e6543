#include "model.h"

NeutronError neutronGetTcm(NeutronModelHandle handle, const void **bytes, size_t *size) {
    struct NeutronModel *model;
    const NeutronError error = nd_enter(handle, &model);
    if (error != NEUTRON_NONE) return error;
    const bool asked = bytes != NULL && size != NULL;
    if (asked) {
        *bytes = model->tcm;
        *size = model->program.header.tcm_bytes;
    }
    nd_leave(model);
    return asked ? NEUTRON_NONE : NEUTRON_ERROR_ARGUMENT_NULL;
}
