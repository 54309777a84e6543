/* pool_sum: running INT32 sums of whole rows per channel, kept in one row of storage. */
#include "nk_simd.h"

static int32_t check(nk_call *call, const nk_pool_sum_params *p) {
    const nk_operand *in = &call->operands[NK_POOL_SUM_INPUT],
                     *out = &call->operands[NK_POOL_SUM_OUTPUT];
    if ((!nk_is_byte(in) && !nk_is_wide(in)) || out->dtype != NEUTRON_DTYPE_INT32)
        return nk_refuse(call, "elements of 8 or 16 bits are summed into INT32");
    if (in->batch != 1 || out->batch != 1) return nk_refuse(call, "the batch must be 1");
    if (in->height != out->height || in->channels != out->channels || out->width != 1)
        return nk_refuse(call, "input and sums differ in rows or channels");
    if (p->kernel_w < 1 || (uint32_t)p->kernel_w != in->width)
        return nk_refuse(call, "the sums cover other pixels");
    if ((uint64_t)in->height * in->width > INT32_MAX / (nk_is_wide(in) ? 65536 : 256))
        return nk_refuse(call, "the sums may leave INT32");
    if (out->ring != 1) return nk_refuse(call, "the sums are held in one row");
    if (!nk_inside(in) || !nk_inside(out)) return nk_refuse(call, "an operand leaves its region");
    return 0;
}

int32_t nk_pool_sum(uint32_t verb, nk_call *call) {
    const nk_pool_sum_params *p = (const nk_pool_sum_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *in = &call->operands[NK_POOL_SUM_INPUT],
                     *out = &call->operands[NK_POOL_SUM_OUTPUT];
    if (nk_is_byte(in) && NK_SIMD(pool_sum, call)) return 0;
    if (nk_is_wide(in) && NK_SIMD(pool_sum16, call)) return 0;
    const size_t item = nk_item(in);
    uint8_t *sums = nk_row(out, 0, 0);
    if (call->row0 == 0) memset(sums, 0, (size_t)4 * out->channels);
    for (int32_t y = call->row0; y < call->row1; ++y) {
        const uint8_t *pixel = nk_row(in, 0, y);
        for (uint32_t x = 0; x < in->width; ++x, pixel += in->pixel) {
            if (nk_stopped(call)) return 0;
            for (uint32_t c = 0; c < in->channels; ++c) {
                const int32_t sum =
                    nk_wrap_add(nk_load32(sums + 4 * (size_t)c), nk_read(in, pixel + c * item));
                memcpy(sums + 4 * (size_t)c, &sum, sizeof sum);
            }
        }
    }
    return 0;
}
