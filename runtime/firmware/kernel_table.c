/* All kernels, for images without a selection. Nothing else is in this file: an archive's member
 * with only weak symbols is left out when a selection defines them, and with it every kernel nobody
 * selected. */
#include "nk.h"

#define ENTRY(id, name, abi, operands, optional, output, params, cost) \
    int32_t nk_##name(uint32_t verb, nk_call *call);
NEUTRON_KERNEL_TABLE(ENTRY)
#undef ENTRY

#define ENTRY(id, name, abi, operands, optional, output, params, cost) [id] = nk_##name,
__attribute__((weak)) int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                                      nk_call *call) = {
    NEUTRON_KERNEL_TABLE(ENTRY)};
#undef ENTRY

__attribute__((weak)) const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;
