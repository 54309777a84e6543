/* check_indices: indices known at run time, copied where all lie inside their limits; otherwise the
 * run ends with an error. The compiler puts it before everything that changes a state. */
#include "nk_elementwise.h"

enum { LIMITS = 8 };

static int64_t index_at(const nk_operand *indices, size_t at) {
    int64_t index;
    if (indices->dtype == NEUTRON_DTYPE_INT32) return nk_load32(indices->data + at * 4);
    memcpy(&index, indices->data + at * 8, sizeof index);
    return index;
}

int32_t nk_check_indices(uint32_t verb, nk_call *call) {
    const nk_check_indices_params *p = (const nk_check_indices_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_CHECK_INDICES_INDICES],
                     *out = &call->operands[NK_CHECK_INDICES_OUTPUT];
    const uint64_t item = in->dtype == NEUTRON_DTYPE_INT32 ? 4 : 8;
    if (verb == NK_CHECK) {
        if ((in->dtype != NEUTRON_DTYPE_INT32 && in->dtype != NEUTRON_DTYPE_INT64) ||
            in->dtype != out->dtype)
            return nk_refuse(call, "indices must be INT32 or INT64");
        if (p->count < 1 || p->period < 1 || p->period > LIMITS)
            return nk_refuse(call, "there are no indices, or more than 8 limits");
        const uint64_t bytes = item * (uint32_t)p->count;
        if (!nk_inside_flat(in, bytes) || !nk_inside_flat(out, bytes) || bytes > nk_bytes(out))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    for (size_t at = 0; at < (size_t)p->count; ++at) {
        const int64_t index = index_at(in, at);
        const int32_t limit = p->limits[at % (size_t)p->period];
        if (index < 0 || index >= limit) return nk_index_outside(call, index, limit);
    }
    memmove(out->data, in->data, (size_t)item * (size_t)p->count);
    return 0;
}
