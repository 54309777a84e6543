/* copy: up to six nested loops with signed byte strides on both sides; transposes, tiles, block
 * rearrangements. Both tensors are held densely: the strides are the call's, not the operands'.
 * memmove, because a corrupt schedule may let them overlap. */
#include <string.h>

#include "nk.h"

enum { RANK = 6 };

/* No tensor reaches 2^40 bytes; bounding each step there keeps the sums below inside 64 bits. */
#define FAR ((int64_t)1 << 40)

/* Bytes [low, high) relative to the base that the loops touch; 0 when they are absurdly far away.
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
                           int32_t out_step) {
    if (in_step == 1 && out_step == 1) memmove(to, from, (size_t)count);
    else
        for (int32_t i = 0; i < count; ++i)
            to[(ptrdiff_t)i * out_step] = from[(ptrdiff_t)i * in_step];
}

static void copy_loops(const nk_call *call, const nk_copy_params *p, const uint8_t *from,
                       uint8_t *to) {
    int32_t at[RANK - 1] = {0};
    ptrdiff_t read = 0, written = 0;
    for (;;) {
        copy_innermost(from + read, to + written, p->dims[RANK - 1], p->input_strides[RANK - 1],
                       p->output_strides[RANK - 1]);
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
    const uint64_t most = nk_bytes(out);
    uint64_t bytes = 1;
    for (int d = 0; d < RANK; ++d) {
        if (p->dims[d] < 1) return nk_refuse(call, "a dimension is empty");
        bytes *= (uint64_t)p->dims[d];
        if (bytes > most) return nk_refuse(call, "the loops write more than the output holds");
    }
    int64_t in_low, in_high, out_low, out_high;
    if (!extent(p->dims, p->input_strides, p->input_offset, &in_low, &in_high) ||
        !extent(p->dims, p->output_strides, p->output_offset, &out_low, &out_high))
        return nk_refuse(call, "a stride is out of range");
    if (!nk_inside_range(in, in_low, in_high) || !nk_inside_range(out, out_low, out_high))
        return nk_refuse(call, "the loops leave an operand's region");
    return 0;
}

int32_t nk_copy(uint32_t verb, nk_call *call) {
    const nk_copy_params *p = (const nk_copy_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_COPY_INPUT], *out = &call->operands[NK_COPY_OUTPUT];
    if (verb == NK_CHECK) return check(call, p, in, out);
    copy_loops(call, p, in->data + p->input_offset, out->data + p->output_offset);
    return 0;
}
