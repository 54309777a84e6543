/* update_slice: a tensor in which a box of elements is replaced, at a place known at run time. All
 * operands are held densely; positions in `starts` move the box back inside where it would leave
 * the tensor, as LiteRT does, so that no data can lead a write astray. Where output and input are
 * the same bytes, as those of a state, only the box is written. */
#include "nk_elementwise.h"

enum { DIMENSIONS = 4, INNER = DIMENSIONS - 1 };

/* a * b, or 2^40 when it would be more than any buffer. */
static uint64_t times(uint64_t a, uint64_t b) {
    const uint64_t far = (uint64_t)1 << 40;
    return b != 0 && a > far / b ? far : a * b;
}

static size_t start_of(const nk_update_slice_params *p, const nk_operand *starts, int d) {
    const int64_t most = p->dims[d] - p->box[d];
    int64_t start = 0;
    if (p->entry[d] < 0) return 0;
    if (starts->dtype == NEUTRON_DTYPE_INT32)
        start = nk_load32(starts->data + (size_t)p->entry[d] * 4);
    else memcpy(&start, starts->data + (size_t)p->entry[d] * 8, sizeof start);
    return start < 0 ? 0 : (size_t)(start > most ? most : start);
}

static int32_t check(nk_call *call, const nk_update_slice_params *p) {
    const nk_operand *in = &call->operands[NK_UPDATE_SLICE_INPUT],
                     *update = &call->operands[NK_UPDATE_SLICE_UPDATE],
                     *starts = &call->operands[NK_UPDATE_SLICE_STARTS],
                     *out = &call->operands[NK_UPDATE_SLICE_OUTPUT];
    if (starts->dtype != NEUTRON_DTYPE_INT32 && starts->dtype != NEUTRON_DTYPE_INT64)
        return nk_refuse(call, "positions must be INT32 or INT64");
    const uint64_t item = starts->dtype == NEUTRON_DTYPE_INT32 ? 4 : 8;
    uint64_t whole = 1, box = 1, read = 0;
    if (p->slice_bytes < 1) return nk_refuse(call, "a slice is empty");
    for (int d = 0; d < DIMENSIONS; ++d) {
        if (p->box[d] < 1 || p->box[d] > p->dims[d])
            return nk_refuse(call, "the box is empty or larger than the tensor");
        whole = times(whole, (uint32_t)p->dims[d]);
        box = times(box, (uint32_t)p->box[d]);
        if (p->entry[d] >= 0 && (uint64_t)p->entry[d] + 1 > read) read = (uint64_t)p->entry[d] + 1;
    }
    whole = times(whole, (uint32_t)p->slice_bytes);
    if (!nk_inside_flat(in, whole) || !nk_inside_flat(out, whole) ||
        !nk_inside_flat(update, times(box, (uint32_t)p->slice_bytes)) ||
        !nk_inside_flat(starts, times(read, item)))
        return nk_refuse(call, "an operand leaves its region");
    if (whole > nk_bytes(out)) return nk_refuse(call, "the tensor is more than the output holds");
    return 0;
}

int32_t nk_update_slice(uint32_t verb, nk_call *call) {
    const nk_update_slice_params *p = (const nk_update_slice_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *starts = &call->operands[NK_UPDATE_SLICE_STARTS];
    const uint8_t *in = call->operands[NK_UPDATE_SLICE_INPUT].data,
                  *from = call->operands[NK_UPDATE_SLICE_UPDATE].data;
    uint8_t *out = call->operands[NK_UPDATE_SLICE_OUTPUT].data;
    const size_t slice = (size_t)p->slice_bytes, run = slice * (size_t)p->box[INNER];
    const size_t row = slice * (size_t)p->dims[INNER], plane = row * (size_t)p->dims[2],
                 image = plane * (size_t)p->dims[1];
    size_t first[DIMENSIONS]; /* read before anything is written */
    for (int d = 0; d < DIMENSIONS; ++d) first[d] = start_of(p, starts, d);
    if (in != out) memmove(out, in, image * (size_t)p->dims[0]);
    for (size_t a = 0; a < (size_t)p->box[0]; ++a)
        for (size_t b = 0; b < (size_t)p->box[1]; ++b) {
            if (nk_stopped(call)) return 0;
            for (size_t c = 0; c < (size_t)p->box[2]; ++c, from += run)
                memmove(out + (first[0] + a) * image + (first[1] + b) * plane +
                            (first[2] + c) * row + first[INNER] * slice,
                        from, run);
        }
    return 0;
}
