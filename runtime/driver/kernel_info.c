#include "model.h"

/* Two generated tables, one row of information: what a CALL must look like. */
#define CALLING(id, name, abi, operands, optional, output, params, cost) \
    [id] = {#name, abi, operands, optional, output, 0, params},
static const nd_kernel_info calling[NEUTRON_KERNEL_LIMIT] = {NEUTRON_KERNEL_TABLE(CALLING)};
#undef CALLING

#define WRITTEN(id, written, moved, input, weights, kernel_h, kernel_w, groups) [id] = written,
static const uint8_t written_operands[NEUTRON_KERNEL_LIMIT] = {NEUTRON_KERNEL_ROLES(WRITTEN)};
#undef WRITTEN

bool nd_kernel(uint32_t kernel, nd_kernel_info *info) {
    if (kernel >= NEUTRON_KERNEL_LIMIT || calling[kernel].name == NULL) return false;
    *info = calling[kernel];
    info->written = written_operands[kernel];
    return true;
}

bool nd_kernel_linked(uint32_t kernel) { return kernel < neutronKernelCount && neutronKernels[kernel] != NULL; }

const char *neutronKernelName(uint32_t kernel) {
    return kernel < NEUTRON_KERNEL_LIMIT && nd_kernel_linked(kernel) ? calling[kernel].name : NULL;
}
