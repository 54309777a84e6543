#include <string.h>

#include "split.h"
#include "nk_window.h"

#if ND_THREADS

/* Least columns of a part: fewer would not fill the vector registers. */
enum { LEAST_COLUMNS = 8 };

/* Kernels with the operands of conv2d and a window. */
static bool has_columns(uint32_t kernel) {
    return kernel == NEUTRON_KERNEL_CONV2D || kernel == NEUTRON_KERNEL_DEPTHWISE_CONV2D;
}

bool nd_columns_independent(const nk_call *call, uint32_t parts) {
    nk_window w;
    if (!has_columns(call->kernel) || !nk_window_of(call, &w)) return false;
    const nk_operand *in = &call->operands[NK_CONV2D_INPUT],
                     *out = &call->operands[NK_CONV2D_OUTPUT];
    const int64_t last = ((int64_t)out->width - 1) * w.stride_w - w.pad_left;
    return out->width >= LEAST_COLUMNS * parts && out->pixel >= out->channels &&
           last < (int64_t)in->width;
}

/* The operand from a column on. */
static void skip_columns(nk_operand *o, uint32_t columns) {
    const uint32_t bytes = columns * o->pixel;
    o->data += bytes;
    o->available -= bytes;
    o->width -= columns;
}

void nd_cut_columns(const nk_call *call, uint32_t first, uint32_t end,
                    int32_t params[NEUTRON_MAX_PARAMS], nk_call *part) {
    *part = *call;
    nk_operand *in = &part->operands[NK_CONV2D_INPUT], *out = &part->operands[NK_CONV2D_OUTPUT];
    nk_window w;
    if (!nk_window_of(call, &w)) return;
    const int32_t start = (int32_t)first * w.stride_w - w.pad_left;
    if (start > 0) skip_columns(in, (uint32_t)start);
    w.pad_left = start < 0 ? -start : 0;
    skip_columns(out, first);
    out->width = end - first;
    /* Where each output column reads one input column, vector loops treat rows without gaps as one.
     */
    if (w.kernel_w == 1 && w.stride_w == 1 && w.pad_left == 0 && in->width > out->width)
        in->width = out->width;
    memcpy(params, call->params, call->param_count * sizeof *params);
    memcpy(params, &w, sizeof w);
    part->params = params;
}

#endif
