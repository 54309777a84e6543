#include "stage_dsp.h"

#if NK_HAS_DSP

bool nk_stage_is_short(const nk_stage *stage, uint32_t channels, uint64_t most) {
    if (stage->rounding != NEUTRON_ROUNDING_DOUBLE || most >= NK_SHORT_LIMIT) return false;
    if (stage->lut || stage->low < INT8_MIN || stage->high > INT8_MAX) return false;
    const int32_t room = NK_SHORT_LIMIT - (int32_t)most;
    const uint8_t *at = stage->table;
    for (; channels; --channels, at += 4) {
        const int32_t bias = nk_load32(at), shift = nk_load32(at + 2 * stage->column);
        if (bias <= -room || bias >= room || shift < -31 || shift > -1) return false;
    }
    return true;
}

#endif
