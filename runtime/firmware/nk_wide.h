/* Shared by the kernels of the array for activations of 16 bits: dot products with weights of 8
 * bits into 64-bit accumulators, and the stage that turns one into an output (docs/numerics.md,
 * 16-bit activations). Zero points are 0, so taps outside the image add nothing.
 */
#ifndef NK_WIDE_H
#define NK_WIDE_H

#include "nk_window.h"

/* How an accumulator becomes an element of 16 bits. The table has four columns of INT32: the low
 * half of the bias, multiplier, shift, the high half of the bias. */
typedef struct {
    const uint8_t *table;
    size_t column; /* bytes of one of the four */
    int32_t low, high;
    uint8_t rounding, narrow;
} nk_wide_stage;

static inline nk_wide_stage nk_make_wide_stage(const nk_call *call, const nk_operand *table,
                                               uint32_t channels, int32_t narrow, int32_t low,
                                               int32_t high) {
    const size_t padded = (size_t)nk_blocks(channels, call->units) * call->units;
    return (nk_wide_stage){table->data, 4 * padded, low, high, call->rounding, (uint8_t)narrow};
}

static inline int64_t nk_wide_stage_bias(const nk_wide_stage *stage, size_t channel) {
    const uint8_t *at = stage->table + 4 * channel;
    const uint32_t low = (uint32_t)nk_load32(at),
                   high = (uint32_t)nk_load32(at + 3 * stage->column);
    return (int64_t)((uint64_t)high << 32 | low);
}

/* Sums of products with the bias added. The reference's accumulators have the bias's width, so
 * `narrow` ones wrap in 32 bits. */
static inline int64_t nk_wide_total(const nk_wide_stage *stage, size_t channel, int64_t acc) {
    const uint64_t total = (uint64_t)acc + (uint64_t)nk_wide_stage_bias(stage, channel);
    return stage->narrow ? (int32_t)(uint32_t)total : (int64_t)total;
}

static inline int32_t nk_wide_rescale(uint8_t rounding, int64_t total, int32_t multiplier,
                                      int32_t shift) {
    switch (rounding) {
    case NEUTRON_ROUNDING_DOUBLE:
        return nk_mbqm((int32_t)(uint32_t)(uint64_t)total, multiplier, nk_clamp(shift, -31, 30));
    case NEUTRON_ROUNDING_SINGLE: return nk_single(total, multiplier, nk_clamp(shift, 1, 62));
    default: {
        const uint64_t mantissa = (uint64_t)((uint32_t)multiplier & 0x7FFFFFFFu) << 22 |
                                  ((uint32_t)shift >> 8 & 0x3FFFFFu);
        return nk_exact53_wide(total, mantissa, nk_clamp(shift & 0xFF, 1, 127));
    }
    }
}

static inline int32_t nk_wide_stage_output(const nk_wide_stage *stage, size_t channel,
                                           int64_t acc) {
    const uint8_t *at = stage->table + 4 * channel + stage->column;
    const int64_t total = nk_wide_total(stage, channel, acc);
    const int32_t value =
        nk_wide_rescale(stage->rounding, total, nk_load32(at), nk_load32(at + stage->column));
    return nk_clamp(value, stage->low, stage->high);
}

/* Check of what these kernels have in common. */
static inline int32_t nk_check_wide(nk_call *call, const nk_operand *in, const nk_operand *table,
                                    const nk_operand *out, int32_t narrow, int32_t low,
                                    int32_t high) {
    if (!nk_is_wide(in) || !nk_is_wide(out))
        return nk_refuse(call, "input and output must be of 16 bits");
    if (in->batch != out->batch) return nk_refuse(call, "input and output differ in batch");
    if (!nk_packing_ok(call)) return nk_refuse(call, "the packing has more than 64 units or lanes");
    if (call->rounding != NEUTRON_ROUNDING_DOUBLE && call->rounding != NEUTRON_ROUNDING_EXACT53 &&
        call->rounding != NEUTRON_ROUNDING_SINGLE)
        return nk_refuse(call, "the rounding mode is not one of 16-bit outputs");
    if ((narrow & ~1) || !nk_clamp16_ok(low, high))
        return nk_refuse(call, "accumulator width or clamp is out of range");
    const uint64_t channels = (uint64_t)nk_blocks(out->channels, call->units) * call->units;
    if (!nk_inside(in) || !nk_inside(out) || !nk_inside_flat(table, 16 * channels))
        return nk_refuse(call, "an operand leaves its region");
    return 0;
}

/* Only the sums in use: clearing all of them would take a small target longer than the products. */
static inline void nk_wide_clear(int64_t *acc, uint32_t units) {
    for (uint32_t m = 0; m < units; ++m) acc[m] = 0;
}

/* acc[m] += sum of input * weight over one tap, weights [inputs/N][M][N]. At most 64 products of 23
 * bits are summed in 32. */
static inline void nk_wide_dot_portable(const nk_call *call, const uint8_t *pixel, uint32_t inputs,
                                        const int8_t *weights, int64_t *acc) {
    const uint32_t units = call->units, length = call->length;
    for (uint32_t at = 0; at < inputs; at += length) {
        int32_t lanes[NK_MAX_LENGTH];
        const uint32_t count = inputs - at < length ? inputs - at : length;
        for (uint32_t n = 0; n < count; ++n) lanes[n] = nk_load16(pixel + 2 * (size_t)(at + n));
        for (uint32_t n = count; n < length; ++n) lanes[n] = 0;
        for (uint32_t m = 0; m < units; ++m, weights += length) {
            int32_t dot = 0;
            for (uint32_t n = 0; n < length; ++n) dot += lanes[n] * weights[n];
            acc[m] += dot;
        }
    }
}

/* Taps of one row of a window of which every channel has its own. */
typedef struct {
    size_t step;          /* bytes between their pixels */
    uint32_t taps, units; /* at most NK_WIDE_TAPS; M of the packing */
} nk_wide_row;

#define NK_WIDE_TAPS 256 /* products of 23 bits that 32 bits can sum */

/* acc[m] += sum of input m * weight m over a row's taps, for `count` channels from `pixel` on. */
static inline void nk_wide_taps_portable(const nk_wide_row *row, const uint8_t *pixel,
                                         const int8_t *weights, uint32_t count, int64_t *acc) {
    for (uint32_t m = 0; m < count; ++m, pixel += 2, ++weights) {
        int32_t sum = 0;
        for (uint32_t t = 0; t < row->taps; ++t)
            sum += nk_load16(pixel + t * row->step) * weights[t * row->units];
        acc[m] += sum;
    }
}

#if NK_HAS_DSP
/* dsp/dot16_dsp.c and dsp/lanes16_dsp.c */
void nk_wide_dot(const nk_call *call, const uint8_t *pixel, uint32_t inputs, const int8_t *weights,
                 int64_t *acc);
void nk_wide_taps(const nk_wide_row *row, const uint8_t *pixel, const int8_t *weights,
                  uint32_t count, int64_t *acc);
#else
#define nk_wide_dot nk_wide_dot_portable
#define nk_wide_taps nk_wide_taps_portable
#endif

#endif
