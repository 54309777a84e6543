/* max_pool2d: the largest of the taps inside the image. */
#include "nk_pool.h"

static int32_t check(nk_call *call) {
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    return nk_check_pool(call, in, &call->operands[NK_MAX_POOL2D_LUT], out);
}

static int32_t pool(const nk_operand *in, uint32_t image, nk_span rows, nk_span columns,
                    uint32_t channel) {
    int32_t best = INT32_MIN;
    for (int32_t iy = rows.first; iy < rows.last; ++iy) {
        const uint8_t *row = nk_row(in, image, iy) + (size_t)channel * nk_item(in);
        for (int32_t ix = columns.first; ix < columns.last; ++ix)
            best = nk_max(best, nk_read(in, row + (size_t)ix * in->pixel));
    }
    return best;
}

int32_t nk_max_pool2d(uint32_t verb, nk_call *call) {
    if (verb == NK_CHECK) return check(call);
    const nk_max_pool2d_params *p = (const nk_max_pool2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT];
    const nk_stage stage = nk_make_stage(call, NULL, &call->operands[NK_MAX_POOL2D_LUT], 0, 0,
                                         p->clamp_low, p->clamp_high);
    if (nk_is_byte(in) && NK_SIMD(max_pool2d, call, &stage)) return 0;
    if (nk_is_wide(in) && NK_SIMD(max_pool2d16, call, &stage)) return 0;
    nk_pool_rows(call, &stage, pool);
    return 0;
}
