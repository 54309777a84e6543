/* lut, 32 elements at a time: the table stays in 16 registers. */
#include "loops.h"

#if NK_HAS_NEON

#include "stage_neon.h"

void nk_look_up_neon(const uint8_t *table, const uint8_t *in, uint8_t *out, uint32_t count) {
    uint32_t i = 0;
    if (count >= 32) {
        const uint8x16x4_t t0 = vld1q_u8_x4(table), t1 = vld1q_u8_x4(table + 64),
                           t2 = vld1q_u8_x4(table + 128), t3 = vld1q_u8_x4(table + 192);
        const uint8x16_t part = vdupq_n_u8(64);
        for (; i + 32 <= count; i += 32) {
            uint8x16_t a = vld1q_u8(in + i), b = vld1q_u8(in + i + 16);
            uint8x16_t x = vqtbl4q_u8(t0, a), y = vqtbl4q_u8(t0, b);
            a = vsubq_u8(a, part), b = vsubq_u8(b, part);
            x = vqtbx4q_u8(x, t1, a), y = vqtbx4q_u8(y, t1, b);
            a = vsubq_u8(a, part), b = vsubq_u8(b, part);
            x = vqtbx4q_u8(x, t2, a), y = vqtbx4q_u8(y, t2, b);
            a = vsubq_u8(a, part), b = vsubq_u8(b, part);
            x = vqtbx4q_u8(x, t3, a), y = vqtbx4q_u8(y, t3, b);
            vst1q_u8(out + i, x);
            vst1q_u8(out + i + 16, y);
        }
    }
    for (; i + 16 <= count; i += 16) vst1q_u8(out + i, nk_look_up16(table, vld1q_u8(in + i)));
    for (; i < count; ++i) out[i] = table[in[i]];
}

static void look_up(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    nk_look_up_neon(call->operands[NK_LUT_TABLE].data, in, out, count);
}

int nk_lut_neon(const nk_call *call) {
    nk_walk1(call, &call->operands[NK_LUT_INPUT], &call->operands[NK_LUT_OUTPUT], look_up);
    return 1;
}

#endif
