/* copy: up to six nested loops with signed byte strides on both sides; slices, transposes, tiles, block rearrangements.
 *
 * With by_rows the loops run once per output row between rows that the operands' geometry locates, so that the call can be
 * cut into stripes and either side may be a ring; without it they run once over tensors that are held densely.
 */
#include "nk_elementwise.h"

enum { RANK = 6 };

/* No tensor reaches 2^40 bytes; bounding each step there keeps the sums below inside 64 bits. */
#define FAR ((int64_t)1 << 40)

/* Bytes [low, high) relative to the base that the loops touch; 0 when they are absurdly far away. */
static int extent(const int32_t *dims, const int32_t *strides, int32_t offset, int32_t item, int64_t *low, int64_t *high) {
    *low = *high = offset;
    for (int d = 0; d < RANK; ++d) {
        int64_t reach = (int64_t)(dims[d] - 1) * strides[d];
        if (reach > FAR || reach < -FAR) return 0;
        if (reach < 0)
            *low += reach;
        else
            *high += reach;
    }
    *high += item;
    return 1;
}

static void copy_innermost(const uint8_t *from, uint8_t *to, int32_t count, int32_t in_step, int32_t out_step, int32_t item) {
    if (in_step == item && out_step == item) {
        memcpy(to, from, (size_t)count * (size_t)item);
    } else if (item == 1) {
        for (int32_t i = 0; i < count; ++i) to[(ptrdiff_t)i * out_step] = from[(ptrdiff_t)i * in_step];
    } else {
        for (int32_t i = 0; i < count; ++i) memcpy(to + (ptrdiff_t)i * out_step, from + (ptrdiff_t)i * in_step, (size_t)item);
    }
}

static void copy_loops(const nk_copy_params *p, const uint8_t *from, uint8_t *to) {
    int32_t at[RANK - 1] = {0};
    ptrdiff_t read = 0, written = 0;
    for (;;) {
        copy_innermost(from + read, to + written, p->dims[RANK - 1], p->input_strides[RANK - 1],
                       p->output_strides[RANK - 1], p->item);
        int d = RANK - 2;
        for (; d >= 0; --d) {
            read += p->input_strides[d];
            written += p->output_strides[d];
            if (++at[d] < p->dims[d]) break;
            at[d] = 0;
            read -= (ptrdiff_t)p->dims[d] * p->input_strides[d];
            written -= (ptrdiff_t)p->dims[d] * p->output_strides[d];
        }
        if (d < 0) return;
    }
}

static int32_t check(nk_call *call, const nk_copy_params *p, const nk_operand *in, const nk_operand *out) {
    if (p->item != 1 && p->item != 2 && p->item != 4 && p->item != 8) return nk_refuse(call, "item size is not 1, 2, 4 or 8");
    uint64_t bytes = (uint64_t)p->item;
    for (int d = 0; d < RANK; ++d) {
        if (p->dims[d] < 1) return nk_refuse(call, "a dimension is empty");
        bytes *= (uint64_t)p->dims[d];
        if (bytes > out->available) return nk_refuse(call, "the loops write more than the output holds");
    }
    int64_t in_low, in_high, out_low, out_high;
    if (!extent(p->dims, p->input_strides, p->input_offset, p->item, &in_low, &in_high) ||
        !extent(p->dims, p->output_strides, p->output_offset, p->item, &out_low, &out_high))
        return nk_refuse(call, "a stride is out of range");
    if (p->by_rows) {
        int64_t last_row = p->row_first + (int64_t)(out->height - 1) * p->row_step;
        int64_t last_image = (int64_t)(out->batch - 1) * p->image_step;
        if (p->row_first < 0 || p->row_first >= (int64_t)in->height || last_row < 0 || last_row >= (int64_t)in->height)
            return nk_refuse(call, "an output row has no input row");
        if (p->image_step < 0 || last_image >= (int64_t)in->batch) return nk_refuse(call, "an output image has no input image");
        if (!nk_inside(in) || !nk_inside(out)) return nk_refuse(call, "an operand leaves its region");
        in_high += (int64_t)last_image * in->plane + (int64_t)(in->ring - 1) * in->pitch;
        out_high += (int64_t)(out->batch - 1) * out->plane + (int64_t)(out->ring - 1) * out->pitch;
    }
    if (!nk_inside_range(in, in_low, in_high) || !nk_inside_range(out, out_low, out_high))
        return nk_refuse(call, "the loops leave an operand's region");
    return 0;
}

int32_t nk_copy(uint32_t verb, nk_call *call) {
    const nk_copy_params *p = (const nk_copy_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_COPY_INPUT], *out = &call->operands[NK_COPY_OUTPUT];
    if (verb == NK_CHECK) return check(call, p, in, out);
    if (!p->by_rows) {
        copy_loops(p, in->data + p->input_offset, out->data + p->output_offset);
        return 0;
    }
    for (uint32_t image = 0; image < out->batch; ++image)
        for (int32_t y = call->row0; y < call->row1; ++y)
            copy_loops(p, nk_row(in, image * (uint32_t)p->image_step, p->row_first + y * p->row_step) + p->input_offset,
                       nk_row(out, image, y) + p->output_offset);
    return 0;
}
