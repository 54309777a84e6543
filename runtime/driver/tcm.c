#include "model.h"

NeutronError neutronGetTcm(NeutronModelHandle handle, const void **bytes, size_t *size) {
    const NeutronError error = nd_handle_error(handle);
    if (error != NEUTRON_NONE) return error;
    if (bytes == NULL || size == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    *bytes = handle->tcm;
    *size = handle->program.header.tcm_bytes;
    return NEUTRON_NONE;
}
