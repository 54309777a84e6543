/* max_pool2d, avg_pool2d and pool_sum of 16-bit activations, 8 channels side by side. */
#include "loops.h"

#if NK_HAS_NEON

#include <arm_neon.h>

#include "pool16.h"

static inline int16x8_t load8(const uint8_t *from) { return vreinterpretq_s16_u8(vld1q_u8(from)); }

static inline void store8(uint8_t *to, int16x8_t words) {
    vst1q_u8(to, vreinterpretq_u8_s16(words));
}

/* The clamp's lower end is one more tap. */
static void max8(const nk_pool *t, uint32_t channel, uint8_t *to) {
    const size_t first = (size_t)t->columns.first * t->pixel + 2 * (size_t)channel;
    const int32_t columns = t->columns.last - t->columns.first;
    int16x8_t best = vdupq_n_s16((int16_t)t->low);
    for (int32_t i = 0; i < t->count; ++i) {
        const uint8_t *at = t->rows[i] + first;
        for (int32_t x = columns; x > 0; --x, at += t->pixel) best = vmaxq_s16(best, load8(at));
    }
    store8(to, vminq_s16(best, vdupq_n_s16((int16_t)t->high)));
}

int nk_max_pool2d16_neon(const nk_call *call, const nk_stage *stage) {
    return nk_pool16(call, stage, max8);
}

static inline int32x4_t mean(int32x4_t sum, int32_t n) {
    if (n > NK_POOL_TAPS) {
        int32_t each[4];
        vst1q_s32(each, sum);
        for (int m = 0; m < 4; ++m) each[m] = nk_exact_mean(each[m], n);
        return vld1q_s32(each);
    }
    const float32x4_t inverse = vdupq_n_f32(1.0f / (float)n), half = vdupq_n_f32(0.5f / (float)n);
    const int32x4_t dividend = vaddq_s32(vabsq_s32(sum), vdupq_n_s32(n / 2));
    const float32x4_t product = vmulq_f32(vcvtq_f32_s32(dividend), inverse);
    const int32x4_t quotient = vcvtq_s32_f32(vaddq_f32(product, half));
    return vbslq_s32(vcltq_s32(sum, vdupq_n_s32(0)), vnegq_s32(quotient), quotient);
}

static void mean8(const nk_pool *t, uint32_t channel, uint8_t *to) {
    const size_t first = (size_t)t->columns.first * t->pixel + 2 * (size_t)channel;
    const int32_t columns = nk_max(t->columns.last - t->columns.first, 0), n = t->count * columns;
    int32x4_t low = vdupq_n_s32(0), high = low;
    for (int32_t i = 0; i < t->count && columns; ++i) {
        const uint8_t *at = t->rows[i] + first;
        for (int32_t x = columns; x > 0; --x, at += t->pixel) {
            const int16x8_t words = load8(at);
            low = vaddw_s16(low, vget_low_s16(words)), high = vaddw_high_s16(high, words);
        }
    }
    if (n) low = mean(low, n), high = mean(high, n);
    const int16x8_t words = vqmovn_high_s32(vqmovn_s32(low), high);
    store8(to, vminq_s16(vmaxq_s16(words, vdupq_n_s16((int16_t)t->low)),
                         vdupq_n_s16((int16_t)t->high)));
}

int nk_avg_pool2d16_neon(const nk_call *call, const nk_stage *stage) {
    return nk_pool16(call, stage, mean8);
}

int nk_pool_sum16_neon(const nk_call *call) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_operand *in = &call->operands[NK_POOL_SUM_INPUT],
                     *out = &call->operands[NK_POOL_SUM_OUTPUT];
    uint8_t *sums = nk_row(out, 0, 0);
    if (out->channels % NK_POOL_LANES) return 0;
    for (uint32_t c = 0; c < out->channels; c += NK_POOL_LANES) {
        int32x4_t sum[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
        uint8_t *at = sums + 4 * (size_t)c;
        for (int i = 0; i < 2 && call->row0 != 0; ++i)
            sum[i] = vreinterpretq_s32_u8(vld1q_u8(at + 16 * i));
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const uint8_t *from = nk_row(in, 0, y) + 2 * (size_t)c;
            for (uint32_t x = 0; x < in->width; ++x, from += in->pixel) {
                const int16x8_t words = load8(from);
                sum[0] = vaddw_s16(sum[0], vget_low_s16(words));
                sum[1] = vaddw_high_s16(sum[1], words);
            }
        }
        for (int i = 0; i < 2; ++i) vst1q_u8(at + 16 * i, vreinterpretq_u8_s32(sum[i]));
    }
    return 1;
}

#endif
