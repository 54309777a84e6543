/* pool_mean: elements of 8 or 16 bits from the sums of a streamed global pool. */
#include "nk_window.h"

static int32_t check(nk_call *call, const nk_pool_mean_params *p) {
    const nk_operand *in = &call->operands[NK_POOL_MEAN_INPUT],
                     *out = &call->operands[NK_POOL_MEAN_OUTPUT];
    if (in->dtype != NEUTRON_DTYPE_INT32 || (!nk_is_byte(out) && !nk_is_wide(out)))
        return nk_refuse(call, "INT32 sums become elements of 8 or 16 bits");
    if (in->batch != 1 || out->batch != 1 || out->height != 1 || out->width != 1 ||
        in->width != 1 || in->ring != 1)
        return nk_refuse(call, "the sums are one row, the output one pixel");
    if (in->channels != out->channels) return nk_refuse(call, "sums and output differ in channels");
    if (p->count < 1 || p->count > INT32_MAX / 256)
        return nk_refuse(call, "the number of elements is out of range");
    if (nk_is_wide(out) && call->operands[NK_POOL_MEAN_LUT].present)
        return nk_refuse(call, "elements of 16 bits take no table");
    if (!nk_scale_ok(p->multiplier, p->shift, 30))
        return nk_refuse(call, "the scale is out of range");
    if (!nk_inside(in) || !nk_inside(out) || !nk_lut_ok(&call->operands[NK_POOL_MEAN_LUT]))
        return nk_refuse(call, "an operand leaves its region");
    return 0;
}

static int32_t mean_of(const nk_call *call, const nk_pool_mean_params *p, int32_t sum) {
    if (call->rounding == NEUTRON_ROUNDING_DOUBLE)
        return nk_mbqm(nk_wrap_add(sum, p->offset), p->multiplier, p->shift);
    const int64_t half = sum > 0 ? p->count / 2 : -(p->count / 2);
    return (int32_t)((sum + half) / p->count);
}

int32_t nk_pool_mean(uint32_t verb, nk_call *call) {
    const nk_pool_mean_params *p = (const nk_pool_mean_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *in = &call->operands[NK_POOL_MEAN_INPUT],
                     *out = &call->operands[NK_POOL_MEAN_OUTPUT];
    const nk_stage stage = nk_make_stage(call, NULL, &call->operands[NK_POOL_MEAN_LUT], 0,
                                         p->output_zero, p->clamp_low, p->clamp_high);
    const uint8_t *sums = nk_row(in, 0, 0);
    uint8_t *to = nk_row(out, 0, 0);
    for (uint32_t c = 0; c < out->channels; ++c)
        nk_write(out, to + (size_t)c * nk_item(out),
                 nk_finish_as(&stage, out, mean_of(call, p, nk_load32(sums + 4 * (size_t)c))));
    return 0;
}
