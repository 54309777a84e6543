#include "model.h"
#include "nk_window.h"

/* Work of a recurrent kernel for each of its weights: one product and, per gate, functions that
 * cost far more than a product. */
enum { RECURRENT_WORK = 64 };

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t elements(const nk_operand *o) {
    return nk_times(nk_times(o->batch, o->height), nk_times(o->width, o->channels));
}

static uint64_t parameter(const nk_call *call, int8_t word) {
    return word < 0 || call->params[word] < 1 ? 1 : (uint64_t)call->params[word];
}

/* Positions of the window. Without weights, which must hold every tap, only those inside the image
 * are visited. */
static uint64_t taps(const nk_call *call, const nd_kernel_info *info, const nk_operand *in) {
    const uint64_t rows = parameter(call, info->kernel_h),
                   columns = parameter(call, info->kernel_w);
    return info->weights >= 0 ? nk_times(rows, columns)
                              : nk_times(least(rows, in->height), least(columns, in->width));
}

uint64_t nd_row_work(const nk_call *call, const nd_kernel_info *info) {
    const nk_operand *in = &call->operands[info->input], *out = &call->operands[info->output];
    const uint64_t row = nk_times(out->batch, nk_times(out->width, out->channels));
    switch (info->formula) {
    case NEUTRON_COST_CONV:
        return nk_times(
            row, nk_times(taps(call, info, in), in->channels / parameter(call, info->groups)));
    case NEUTRON_COST_LANE: return nk_times(row, taps(call, info, in));
    case NEUTRON_COST_FC: return nk_times(row, in->channels);
    /* The left matrix has as many rows as the output is wide; what remains of it is the depth. */
    case NEUTRON_COST_MATMUL: return nk_times(row, nk_times(in->width, in->channels) / out->width);
    /* Every weight once for each sequence of the batch; functions of the gates beside them. */
    case NEUTRON_COST_RECURRENT:
        return nk_times(nk_times(out->batch, out->width),
                        nk_times(RECURRENT_WORK, elements(&call->operands[info->weights])));
    case NEUTRON_COST_REDUCE: return elements(in) / out->height + 1;
    default: return row;
    }
}

uint64_t nd_call_work(const nk_call *call, const nd_kernel_info *info, uint32_t rows) {
    const uint32_t height = call->operands[info->output].height;
    return nk_times(nd_row_work(call, info), info->dense || rows > height ? height : rows);
}

uint64_t nd_call_macs(const nk_call *call, const nd_kernel_info *info, uint32_t rows) {
    const bool multiplies = info->weights >= 0 || info->formula == NEUTRON_COST_MATMUL;
    const uint64_t work = multiplies ? nd_call_work(call, info, rows) : 0;
    return info->formula == NEUTRON_COST_RECURRENT ? work / RECURRENT_WORK : work;
}

uint64_t nd_call_bytes(const nk_call *call, const nd_kernel_info *info, uint32_t rows) {
    const uint32_t height = call->operands[info->output].height;
    const bool stays = info->formula == NEUTRON_COST_UPDATE &&
                       call->operands[info->input].data == call->operands[info->output].data;
    uint64_t bytes = 0;
    for (uint32_t at = 0; at < call->operand_count; at++) {
        if (!call->operands[at].present ||
            (stays && (at == (uint32_t)info->input || at == info->output)))
            continue;
        const uint64_t whole = nk_bytes(&call->operands[at]);
        bytes +=
            info->moved >> at & 1 && !info->dense ? (whole * rows + height - 1) / height : whole;
    }
    return bytes;
}
