/* resize_nearest: output pixel (y, x) is input pixel (rows[y], columns[x]); nearest-neighbour
 * resizing and mirrored borders. The tables come from the compiler; an entry beyond the input is
 * cut to its last row or column. */
#include "nk_elementwise.h"

static uint32_t entry(const nk_operand *table, uint32_t at, uint32_t size) {
    const uint32_t index = (uint32_t)nk_load32(table->data + (size_t)at * 4);
    return index < size ? index : size - 1;
}

int32_t nk_resize_nearest(uint32_t verb, nk_call *call) {
    const nk_resize_nearest_params *p =
        (const nk_resize_nearest_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_RESIZE_NEAREST_INPUT],
                     *out = &call->operands[NK_RESIZE_NEAREST_OUTPUT];
    const nk_operand *rows = &call->operands[NK_RESIZE_NEAREST_ROWS];
    const nk_operand *columns = &call->operands[NK_RESIZE_NEAREST_COLUMNS];
    if (verb == NK_CHECK) {
        if (!nk_same_type(in, out) || p->item != (int32_t)nk_item(out))
            return nk_refuse(call, "input and output must be of one type of 8 or 16 bits");
        if (in->batch != out->batch || in->channels != out->channels)
            return nk_refuse(call, "input and output differ in batch or channels");
        if (!nk_inside(in) || !nk_inside(out) || !nk_inside_flat(rows, (uint64_t)out->height * 4) ||
            !nk_inside_flat(columns, (uint64_t)out->width * 4))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const uint8_t *from = nk_row(in, image, (int32_t)entry(rows, (uint32_t)y, in->height));
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                if (nk_stopped(call)) return 0;
                memmove(to, from + (size_t)entry(columns, x, in->width) * in->pixel,
                        (size_t)out->channels * nk_item(out));
            }
        }
    }
    return 0;
}
