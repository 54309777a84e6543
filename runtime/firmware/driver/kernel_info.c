#include "model.h"

/* Two generated tables, one row of information: what a CALL must look like, and what it may do. */
#if ND_MESSAGES
#define NAME(name) #name
#else
#define NAME(name) ""
#endif
#define CALLING(id, name, abi, operands, optional, output, params, cost) \
    [id] = {NAME(name), abi, operands, optional, output, 0, params, cost, 0, 0, 0, 0, 0, 0, 0},
static const nd_kernel_info calling[NEUTRON_KERNEL_LIMIT] = {NEUTRON_KERNEL_TABLE(CALLING)};
#undef CALLING

#define ROLES(id, written, moved, input, weights, kernel_h, kernel_w, groups, dense) \
    [id] = {written, moved, dense, input, weights, kernel_h, kernel_w, groups},
static const struct {
    uint8_t written, moved, dense;
    int8_t input, weights, kernel_h, kernel_w, groups;
} roles[NEUTRON_KERNEL_LIMIT] = {NEUTRON_KERNEL_ROLES(ROLES)};
#undef ROLES

bool nd_kernel(uint32_t kernel, nd_kernel_info *info) {
    if (kernel >= NEUTRON_KERNEL_LIMIT || calling[kernel].name == NULL) return false;
    *info = calling[kernel];
    info->written = roles[kernel].written;
    info->moved = roles[kernel].moved;
    info->dense = roles[kernel].dense;
    info->input = roles[kernel].input;
    info->weights = roles[kernel].weights;
    info->kernel_h = roles[kernel].kernel_h;
    info->kernel_w = roles[kernel].kernel_w;
    info->groups = roles[kernel].groups;
    return true;
}

bool nd_kernel_linked(uint32_t kernel) {
    return kernel < neutronKernelCount && neutronKernels[kernel] != NULL;
}

const char *neutronKernelName(uint32_t kernel) {
    return kernel < NEUTRON_KERNEL_LIMIT && nd_kernel_linked(kernel) ? calling[kernel].name : NULL;
}
