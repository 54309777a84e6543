/* requantize, 16 elements at a time. */
#include "loops.h"

#if NK_HAS_NEON

#include "runs.h"
#include "stage_neon.h"

#define LANES 16

typedef struct {
    int16x8_t zero; /* 128 lower for UINT8, whose bytes are flipped to signed ones */
    uint8x16_t toggle;
    nk_lanes4 lanes;
    nk_clamps clamps;
    int plain;
} constants;

NK_INLINE void block(const constants *k, const uint8_t *in, uint8_t *out, const int plain) {
    const int8x16_t x = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(in), k->toggle));
    const int16x8_t low = vsubq_s16(vmovl_s8(vget_low_s8(x)), k->zero);
    const int16x8_t high = vsubq_s16(vmovl_high_s8(x), k->zero);
    const int32x4_t v0 = nk_rescale4(&k->lanes, vmovl_s16(vget_low_s16(low)), plain);
    const int32x4_t v1 = nk_rescale4(&k->lanes, vmovl_high_s16(low), plain);
    const int32x4_t v2 = nk_rescale4(&k->lanes, vmovl_s16(vget_low_s16(high)), plain);
    const int32x4_t v3 = nk_rescale4(&k->lanes, vmovl_high_s16(high), plain);
    vst1q_u8(out, nk_bytes16(&k->clamps, v0, v1, v2, v3, plain, 0));
}

NK_INLINE void plain_block(const void *constants_of_run, const uint8_t *in, uint8_t *out) {
    block(constants_of_run, in, out, 1);
}

NK_INLINE void any_block(const void *constants_of_run, const uint8_t *in, uint8_t *out) {
    block(constants_of_run, in, out, 0);
}

static constants constants_of(const nk_call *call, int *fits) {
    const nk_requantize_params *p = (const nk_requantize_params *)(const void *)call->params;
    const int is_signed = call->operands[NK_REQUANTIZE_INPUT].dtype == NEUTRON_DTYPE_INT8;
    constants k;
    k.zero = vdupq_n_s16((int16_t)(p->input_zero - (is_signed ? 0 : 128)));
    k.toggle = vdupq_n_u8(is_signed ? 0 : 0x80);
    k.lanes = nk_lanes4_of(vdupq_n_s32(p->multiplier), vdupq_n_s32(p->shift));
    k.plain = p->shift < 0;
    *fits =
        nk_clamps_of(&k.clamps, call->operands[NK_REQUANTIZE_OUTPUT].dtype == NEUTRON_DTYPE_INT8,
                     p->output_zero, p->clamp_low, p->clamp_high, k.plain);
    return k;
}

static void move_zero(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const nk_requantize_params *p = (const nk_requantize_params *)(const void *)call->params;
    const int is_signed = call->operands[NK_REQUANTIZE_INPUT].dtype == NEUTRON_DTYPE_INT8;
    const int32_t down = call->operands[NK_REQUANTIZE_OUTPUT].dtype == NEUTRON_DTYPE_INT8 ? 0 : 128;
    const int32_t up = is_signed ? 0 : 128;
    const int16x8_t by = vdupq_n_s16((int16_t)(p->output_zero - p->input_zero - down + up));
    const int8x16_t low = vdupq_n_s8((int8_t)(p->clamp_low - down)),
                    high = vdupq_n_s8((int8_t)(p->clamp_high - down));
    const uint8x16_t toggle = vdupq_n_u8((uint8_t)up), flip = vdupq_n_u8((uint8_t)down);
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const int8x16_t x = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(in + i), toggle));
        const int16x8_t a = vaddw_s8(by, vget_low_s8(x)), b = vaddw_high_s8(by, x);
        const int8x16_t bytes = vqmovn_high_s16(vqmovn_s16(a), b);
        const int8x16_t kept = vminq_s8(vmaxq_s8(bytes, low), high);
        vst1q_u8(out + i, veorq_u8(vreinterpretq_u8_s8(kept), flip));
    }
    nk_move_zero(p, is_signed, in + i, out + i, count - i);
}

static void rescale(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    int fits;
    const constants k = constants_of(call, &fits);
    if (k.plain) nk_run_blocks1(plain_block, &k, LANES, in, 1, out, 1, count);
    else nk_run_blocks1(any_block, &k, LANES, in, 1, out, 1, count);
}

int nk_requantize_neon(const nk_call *call) {
    int fits;
    constants_of(call, &fits);
    const int moves = nk_moves_zero((const nk_requantize_params *)(const void *)call->params);
    const nk_operand *in = &call->operands[NK_REQUANTIZE_INPUT],
                     *out = &call->operands[NK_REQUANTIZE_OUTPUT];
    if (fits) nk_walk1(call, in, out, moves ? move_zero : rescale);
    return fits;
}

#endif
