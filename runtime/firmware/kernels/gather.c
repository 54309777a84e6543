/* gather: slices of a tensor picked by INT32 or INT64 indices known at run time. All operands are
 * held densely: input [batches, outer, axis, slice], indices [batches, count], output [batches,
 * outer, count, slice]. An index outside the axis picks its nearest end, so that no data can lead a
 * read astray. */
#include "nk_elementwise.h"

static uint32_t index_at(const nk_operand *indices, size_t at, uint32_t size) {
    int64_t index;
    if (indices->dtype == NEUTRON_DTYPE_INT32) index = nk_load32(indices->data + at * 4);
    else memcpy(&index, indices->data + at * 8, sizeof index);
    return index < 0 ? 0 : index >= (int64_t)size ? size - 1 : (uint32_t)index;
}

/* a * b, or 2^40 when it would be more than any buffer. */
static uint64_t times(uint64_t a, int32_t b) {
    const uint64_t far = (uint64_t)1 << 40;
    return a > far / (uint32_t)b ? far : a * (uint32_t)b;
}

int32_t nk_gather(uint32_t verb, nk_call *call) {
    const nk_gather_params *p = (const nk_gather_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_GATHER_INPUT],
                     *indices = &call->operands[NK_GATHER_INDICES];
    const nk_operand *out = &call->operands[NK_GATHER_OUTPUT];
    if (verb == NK_CHECK) {
        if (indices->dtype != NEUTRON_DTYPE_INT32 && indices->dtype != NEUTRON_DTYPE_INT64)
            return nk_refuse(call, "indices must be INT32 or INT64");
        if (p->batches < 1 || p->outer < 1 || p->axis < 1 || p->count < 1 || p->slice_bytes < 1)
            return nk_refuse(call, "a dimension is empty");
        const int32_t item = indices->dtype == NEUTRON_DTYPE_INT32 ? 4 : 8;
        const uint64_t slices = times((uint64_t)p->batches, p->outer);
        if (!nk_inside_flat(in, times(times(slices, p->axis), p->slice_bytes)) ||
            !nk_inside_flat(indices, times(times((uint64_t)p->batches, p->count), item)) ||
            !nk_inside_flat(out, times(times(slices, p->count), p->slice_bytes)))
            return nk_refuse(call, "an operand leaves its region");
        if (times(times(slices, p->count), p->slice_bytes) > nk_bytes(out))
            return nk_refuse(call, "the slices are more than the output holds");
        return 0;
    }
    const size_t slice = (size_t)p->slice_bytes, axis = (size_t)p->axis, count = (size_t)p->count;
    uint8_t *to = out->data;
    for (size_t batch = 0; batch < (size_t)p->batches; ++batch)
        for (size_t outer = 0; outer < (size_t)p->outer; ++outer) {
            const uint8_t *from = in->data + (batch * (size_t)p->outer + outer) * axis * slice;
            if (nk_stopped(call)) return 0;
            for (size_t i = 0; i < count; ++i, to += slice)
                memmove(to, from + index_at(indices, batch * count + i, (uint32_t)axis) * slice,
                        slice);
        }
    return 0;
}
