/* avg_pool2d: the mean of the taps inside the image, halves away from zero. */
#include "nk_pool.h"

/* Their sum, at most 255 or 32768 each, stays an int32 with room for rounding. */
#define MAX_TAPS (1u << 22)
#define MAX_TAPS16 (1u << 15)

static int32_t check(nk_call *call, const nk_avg_pool2d_params *p) {
    const nk_operand *in = &call->operands[NK_AVG_POOL2D_INPUT],
                     *out = &call->operands[NK_AVG_POOL2D_OUTPUT];
    const uint64_t rows = p->kernel_h < 1 ? 1 : (uint32_t)p->kernel_h,
                   columns = p->kernel_w < 1 ? 1 : (uint32_t)p->kernel_w;
    if ((rows < in->height ? rows : in->height) * (columns < in->width ? columns : in->width) >
        (nk_is_wide(in) ? MAX_TAPS16 : MAX_TAPS))
        return nk_refuse(call, "the window has too many taps");
    return nk_check_pool(call, in, &call->operands[NK_AVG_POOL2D_LUT], out);
}

static int32_t pool(const nk_operand *in, uint32_t image, nk_span rows, nk_span columns,
                    uint32_t channel) {
    if (rows.last <= rows.first || columns.last <= columns.first) return 0;
    int32_t sum = 0;
    const int32_t count = (rows.last - rows.first) * (columns.last - columns.first);
    for (int32_t iy = rows.first; iy < rows.last; ++iy) {
        const uint8_t *row = nk_row(in, image, iy) + (size_t)channel * nk_item(in);
        for (int32_t ix = columns.first; ix < columns.last; ++ix)
            sum += nk_read(in, row + (size_t)ix * in->pixel);
    }
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

int32_t nk_avg_pool2d(uint32_t verb, nk_call *call) {
    const nk_avg_pool2d_params *p = (const nk_avg_pool2d_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *in = &call->operands[NK_AVG_POOL2D_INPUT];
    const nk_stage stage = nk_make_stage(call, NULL, &call->operands[NK_AVG_POOL2D_LUT], 0, 0,
                                         p->clamp_low, p->clamp_high);
    if (nk_is_byte(in) && NK_SIMD(avg_pool2d, call, &stage)) return 0;
    if (nk_is_wide(in) && NK_SIMD(avg_pool2d16, call, &stage)) return 0;
    nk_pool_rows(call, &stage, pool);
    return 0;
}
