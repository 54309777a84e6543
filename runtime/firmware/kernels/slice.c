/* slice: output element i is input element first + i * step in each of four dimensions. The output
 * may be a part of a larger tensor, so this is also how parts are put together. */
#include "nk_elementwise.h"

/* One element of one or two bytes. */
static inline void move_element(uint8_t *to, const uint8_t *from, ptrdiff_t item) {
    if (item == 1) *to = *from;
    else memmove(to, from, 2);
}

enum { IMAGE, ROW, COLUMN, CHANNEL, DIMENSIONS };

/* 1 when positions first, first + step, … (count of them) all lie in [0, size). */
static int lies_inside(int32_t first, int32_t step, uint32_t count, uint32_t size) {
    const int64_t last = first + (int64_t)(count - 1) * step;
    return first >= 0 && first < (int64_t)size && last >= 0 && last < (int64_t)size;
}

static int32_t check(nk_call *call, const nk_slice_params *p, const nk_operand *in,
                     const nk_operand *out) {
    const uint32_t sizes[DIMENSIONS] = {in->batch, in->height, in->width, in->channels};
    const uint32_t counts[DIMENSIONS] = {out->batch, out->height, out->width, out->channels};
    if (!nk_same_type(in, out))
        return nk_refuse(call, "input and output must be of one type of 8 or 16 bits");
    if (!nk_inside(in) || !nk_inside(out)) return nk_refuse(call, "an operand leaves its region");
    for (int d = 0; d < DIMENSIONS; ++d)
        if (!lies_inside(p->first[d], p->step[d], counts[d], sizes[d]))
            return nk_refuse(call, "an output element has no input element");
    return 0;
}

static void slice_row(const nk_slice_params *p, const nk_operand *in, const nk_operand *out,
                      const uint8_t *from, uint8_t *to) {
    const ptrdiff_t move = (ptrdiff_t)p->step[COLUMN] * in->pixel;
    const ptrdiff_t item = nk_item(out), pixel = (ptrdiff_t)out->channels * item;
    from += (ptrdiff_t)p->first[COLUMN] * in->pixel + (ptrdiff_t)p->first[CHANNEL] * item;
    if (p->step[CHANNEL] != 1 && out->channels > 1) {
        for (uint32_t x = 0; x < out->width; ++x, to += out->pixel)
            for (uint32_t c = 0; c < out->channels; ++c)
                move_element(to + c * item,
                             from + (ptrdiff_t)x * move + (ptrdiff_t)c * p->step[CHANNEL] * item,
                             item);
    } else if (move == pixel && (ptrdiff_t)out->pixel == pixel) {
        memmove(to, from, (size_t)out->width * (size_t)pixel);
    } else {
        for (uint32_t x = 0; x < out->width; ++x, to += out->pixel)
            memmove(to, from + (ptrdiff_t)x * move, (size_t)pixel);
    }
}

int32_t nk_slice(uint32_t verb, nk_call *call) {
    const nk_slice_params *p = (const nk_slice_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_SLICE_INPUT], *out = &call->operands[NK_SLICE_OUTPUT];
    if (verb == NK_CHECK) return check(call, p, in, out);
    for (uint32_t image = 0; image < out->batch; ++image)
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const uint32_t source = (uint32_t)(p->first[IMAGE] + (int32_t)image * p->step[IMAGE]);
            slice_row(p, in, out, nk_row(in, source, p->first[ROW] + y * p->step[ROW]),
                      nk_row(out, image, y));
        }
    return 0;
}
