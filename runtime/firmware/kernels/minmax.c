/* minmax: the larger or smaller of two stored values; scales play no part. */
#include "nk_elementwise.h"

static void maximum_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                        uint32_t step_b, uint8_t *out, uint32_t count) {
    const uint8_t flip = (uint8_t)nk_flip(&call->operands[NK_MINMAX_OUTPUT]);
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b)
        out[i] = (*a ^ flip) > (*b ^ flip) ? *a : *b;
}

static void minimum_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                        uint32_t step_b, uint8_t *out, uint32_t count) {
    const uint8_t flip = (uint8_t)nk_flip(&call->operands[NK_MINMAX_OUTPUT]);
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b)
        out[i] = (*a ^ flip) < (*b ^ flip) ? *a : *b;
}

static void maximum_run16(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                          uint32_t step_b, uint8_t *out, uint32_t count) {
    (void)call;
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b, out += 2)
        nk_store16(out, nk_max(nk_load16(a), nk_load16(b)));
}

static void minimum_run16(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                          uint32_t step_b, uint8_t *out, uint32_t count) {
    (void)call;
    for (uint32_t i = 0; i < count; ++i, a += step_a, b += step_b, out += 2)
        nk_store16(out, nk_min(nk_load16(a), nk_load16(b)));
}

int32_t nk_minmax(uint32_t verb, nk_call *call) {
    const nk_minmax_params *p = (const nk_minmax_params *)(const void *)call->params;
    if (verb == NK_CHECK) {
        if (p->minimum != 0 && p->minimum != 1)
            return nk_refuse(call, "mode is neither maximum nor minimum");
        return nk_check_walk2_any(call);
    }
    if (nk_is_wide(&call->operands[NK_MINMAX_OUTPUT]))
        nk_walk2(call, p->minimum ? minimum_run16 : maximum_run16);
    else nk_walk2(call, p->minimum ? minimum_run : maximum_run);
    return 0;
}
