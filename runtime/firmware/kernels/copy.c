/* copy: up to six nested loops with signed strides on both sides, counted in elements of any type;
 * transposes, tiles, block rearrangements. Both tensors are held densely: the strides are the
 * call's, not the operands'. memmove, because a corrupt schedule may let them overlap. */
#include <string.h>

#include "nk.h"

enum { RANK = 6 };

/* No tensor reaches 2^40 bytes; bounding each step there keeps the sums below inside 64 bits. */
#define FAR ((int64_t)1 << 40)

/* Elements [low, high) relative to the base that the loops touch; 0 when they are absurdly far
 * away.
 */
static int extent(const int32_t *dims, const int32_t *strides, int32_t offset, int64_t *low,
                  int64_t *high) {
    *low = *high = offset;
    for (int d = 0; d < RANK; ++d) {
        int64_t reach = (int64_t)(dims[d] - 1) * strides[d];
        if (reach > FAR || reach < -FAR) return 0;
        if (reach < 0) *low += reach;
        else *high += reach;
    }
    *high += 1;
    return 1;
}

static void copy_innermost(const uint8_t *from, uint8_t *to, int32_t count, int32_t in_step,
                           int32_t out_step, uint32_t item) {
    const ptrdiff_t read = (ptrdiff_t)in_step * item, written = (ptrdiff_t)out_step * item;
    if (in_step == 1 && out_step == 1) memmove(to, from, (size_t)count * item);
    else if (item == 1)
        for (int32_t i = 0; i < count; ++i) to[i * written] = from[i * read];
    else
        for (int32_t i = 0; i < count; ++i) memmove(to + i * written, from + i * read, item);
}

static void copy_loops(const nk_call *call, const nk_copy_params *p, const uint8_t *from,
                       uint8_t *to, uint32_t item) {
    int32_t at[RANK - 1] = {0};
    ptrdiff_t read = 0, written = 0;
    for (;;) {
        copy_innermost(from + read * (ptrdiff_t)item, to + written * (ptrdiff_t)item,
                       p->dims[RANK - 1], p->input_strides[RANK - 1], p->output_strides[RANK - 1],
                       item);
        int d = RANK - 2;
        for (; d >= 0; --d) {
            read += p->input_strides[d];
            written += p->output_strides[d];
            if (++at[d] < p->dims[d]) break;
            at[d] = 0;
            read -= (ptrdiff_t)p->dims[d] * p->input_strides[d];
            written -= (ptrdiff_t)p->dims[d] * p->output_strides[d];
        }
        if (d < 0 || nk_stopped(call)) return;
    }
}

static int32_t check(nk_call *call, const nk_copy_params *p, const nk_operand *in,
                     const nk_operand *out) {
    const int64_t item = nk_item_bytes(out);
    if (item == 0 || nk_item_bytes(in) != item)
        return nk_refuse(call, "input and output have elements of different sizes");
    const uint64_t most = nk_bytes(out) / (uint64_t)item;
    uint64_t elements = 1;
    for (int d = 0; d < RANK; ++d) {
        if (p->dims[d] < 1) return nk_refuse(call, "a dimension is empty");
        elements *= (uint64_t)p->dims[d];
        if (elements > most) return nk_refuse(call, "the loops write more than the output holds");
    }
    int64_t in_low, in_high, out_low, out_high;
    if (!extent(p->dims, p->input_strides, p->input_offset, &in_low, &in_high) ||
        !extent(p->dims, p->output_strides, p->output_offset, &out_low, &out_high))
        return nk_refuse(call, "a stride is out of range");
    if (!nk_inside_range(in, in_low * item, in_high * item) ||
        !nk_inside_range(out, out_low * item, out_high * item))
        return nk_refuse(call, "the loops leave an operand's region");
    return 0;
}

int32_t nk_copy(uint32_t verb, nk_call *call) {
    const nk_copy_params *p = (const nk_copy_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_COPY_INPUT], *out = &call->operands[NK_COPY_OUTPUT];
    if (verb == NK_CHECK) return check(call, p, in, out);
    const uint32_t item = nk_item_bytes(out);
    copy_loops(call, p, in->data + (ptrdiff_t)p->input_offset * item,
               out->data + (ptrdiff_t)p->output_offset * item, item);
    return 0;
}
