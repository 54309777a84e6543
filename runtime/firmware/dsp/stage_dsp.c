#include "stage_dsp.h"

#if NK_HAS_DSP

/* 1 when the sum with this bias is small enough and the shift is one of the short form's. */
static int is_short(const nk_stage *stage, uint32_t channel, int32_t most, int32_t first,
                    int32_t last) {
    const uint8_t *at = stage->table + 4 * (size_t)channel;
    const int32_t bias = nk_load32(at), shift = nk_load32(at + 2 * stage->column);
    return bias > -most && bias < most && shift >= first && shift <= last;
}

int nk_stage_form(const nk_stage *stage, uint32_t channels, uint64_t most) {
    int32_t first = -31, last = 0;
    int form = NK_STAGE_SHORT_DOUBLE;
    if (stage->rounding == NEUTRON_ROUNDING_EXACT31)
        form = NK_STAGE_SHORT_EXACT31, first = 33, last = 62;
    else if (stage->rounding != NEUTRON_ROUNDING_DOUBLE) return NK_STAGE_LONG;
    if (most >= NK_SHORT_LIMIT) return NK_STAGE_LONG;
    for (uint32_t channel = 0; channel < channels; ++channel)
        if (!is_short(stage, channel, NK_SHORT_LIMIT - (int32_t)most, first, last))
            return NK_STAGE_LONG;
    return form;
}

#endif
