/* requantize from or to elements of 16 bits, 8 at a time. */
#include "loops.h"

#if NK_HAS_NEON

#include "runs.h"
#include "stage_neon.h"

#define LANES 8

typedef struct {
    nk_lanes4 lanes;
    int32x4_t zero_in, zero_out;
    int16x8_t low, high;
    uint8_t from, to; /* element types */
} constants;

NK_INLINE int16x8_t widen(const uint8_t *from, uint8_t dtype) {
    if (dtype == NEUTRON_DTYPE_INT16) return vreinterpretq_s16_u8(vld1q_u8(from));
    const uint8x8_t bytes = vld1_u8(from);
    return dtype == NEUTRON_DTYPE_INT8 ? vmovl_s8(vreinterpret_s8_u8(bytes))
                                       : vreinterpretq_s16_u16(vmovl_u8(bytes));
}

NK_INLINE int32x4_t rescaled(const constants *k, int32x4_t x) {
    return nk_wrap_add4(nk_rescale4(&k->lanes, vsubq_s32(x, k->zero_in), 0), k->zero_out);
}

/* Narrowing saturates to 16 bits, which the clamp hides. */
NK_INLINE void block(const void *constants_of_run, const uint8_t *in, uint8_t *out) {
    const constants *k = constants_of_run;
    const int16x8_t x = widen(in, k->from);
    const int32x4_t low = rescaled(k, vmovl_s16(vget_low_s16(x))),
                    high = rescaled(k, vmovl_high_s16(x));
    const int16x8_t words = vqmovn_high_s32(vqmovn_s32(low), high);
    const int16x8_t clamped = vminq_s16(vmaxq_s16(words, k->low), k->high);
    if (k->to == NEUTRON_DTYPE_INT16) vst1q_u8(out, vreinterpretq_u8_s16(clamped));
    else vst1_u8(out, vmovn_u16(vreinterpretq_u16_s16(clamped)));
}

static void rescale(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const constants k = *(const constants *)call->context;
    const size_t item_in = nk_item(&call->operands[NK_REQUANTIZE_INPUT]),
                 item_out = nk_item(&call->operands[NK_REQUANTIZE_OUTPUT]);
    nk_run_blocks1(block, &k, LANES, in, item_in, out, item_out, count);
}

int nk_requantize16_neon(const nk_call *call) {
    const nk_requantize_params *p = (const nk_requantize_params *)(const void *)call->params;
    constants k;
    k.from = call->operands[NK_REQUANTIZE_INPUT].dtype;
    k.to = call->operands[NK_REQUANTIZE_OUTPUT].dtype;
    k.lanes = nk_lanes4_of(vdupq_n_s32(p->multiplier), vdupq_n_s32(p->shift));
    k.zero_in = vdupq_n_s32(p->input_zero), k.zero_out = vdupq_n_s32(p->output_zero);
    k.low = vdupq_n_s16((int16_t)p->clamp_low), k.high = vdupq_n_s16((int16_t)p->clamp_high);
    nk_call own = *call;
    own.context = &k;
    nk_walk1(&own, &own.operands[NK_REQUANTIZE_INPUT], &own.operands[NK_REQUANTIZE_OUTPUT],
             rescale);
    return 1;
}

#endif
