#include "stage_helium.h"

#if NK_HAS_HELIUM

bool nk_stage_is_right(const nk_stage *stage, uint32_t channels) {
    if (stage->rounding != NEUTRON_ROUNDING_DOUBLE || stage->lut) return false;
    const int32_t *at = (const int32_t *)(const void *)(stage->table + 2 * stage->column);
    for (; channels; at += 4) {
        const mve_pred16_t here = vctp32q(channels);
        const int32x4_t shifts = vld1q_z_s32(at, here);
        if (vcmpgtq_m_n_s32(shifts, 0, here) || vcmpltq_m_n_s32(shifts, -31, here)) return false;
        channels -= channels < 4 ? channels : 4;
    }
    return true;
}

/* What outputs have in common, in registers. */
typedef struct {
    int32x4_t low, high;
    int32_t zero;
} bounds;

static inline void put(const bounds *b, int32x4_t multipliers, int32x4_t shifts, int32x4_t sums,
                       uint8_t *to) {
    const int32x4_t value = nk_four_right(multipliers, shifts, sums);
    const int32x4_t shifted = vaddq_n_s32(value, b->zero);
    vstrbq_s32((int8_t *)to, vminq_s32(vmaxq_s32(shifted, b->low), b->high));
}

void nk_finish_right(const nk_finish_right_job *job) {
    const bounds b = {vdupq_n_s32(job->low), vdupq_n_s32(job->high), job->zero};
    const int32_t *sums = job->sums, *at = (const int32_t *)(const void *)job->at;
    const int32_t *shift_at = at + job->column / 4;
    uint8_t *to = job->to, *other = job->other;
    for (uint32_t fours = job->fours; fours; --fours) {
        const int32x4_t multipliers = vld1q_s32(at), shifts = vld1q_s32(shift_at);
        put(&b, multipliers, shifts, vld1q_s32(sums + 4), other);
        put(&b, multipliers, shifts, vld1q_s32(sums), to);
        at += 4, shift_at += 4, sums += 8, to += 4, other += 4;
    }
}

#endif
