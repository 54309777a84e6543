/* max_pool2d and avg_pool2d of bytes, four channels at a time. */
#include "loops.h"
#include "nk_pool.h"

#if NK_HAS_DSP

enum { TAPS = 128 }; /* sums of so many bytes are 16-bit numbers */

/* The larger of each pair of bytes; SEL takes those whose difference set its flag. */
static uint32_t larger(uint32_t a, uint32_t b, int32_t flip) {
    uint32_t best;
    if (flip) __asm__("ssub8 %0, %1, %2\nsel %0, %1, %2" : "=&r"(best) : "r"(a), "r"(b));
    else __asm__("usub8 %0, %1, %2\nsel %0, %1, %2" : "=&r"(best) : "r"(a), "r"(b));
    return best;
}

/* Taps of an output pixel that lie inside the image: rows of so many pixels. */
typedef struct {
    uint32_t image;
    nk_span rows, columns;
} taps;

static uint32_t largest(const nk_operand *in, const taps *t, uint32_t channel, int32_t flip) {
    uint32_t best = flip ? 0x80808080u : 0;
    for (int32_t iy = t->rows.first; iy < t->rows.last; ++iy) {
        const uint8_t *from =
            nk_row(in, t->image, iy) + (size_t)t->columns.first * in->pixel + channel;
        for (int32_t ix = t->columns.first; ix < t->columns.last; ++ix, from += in->pixel)
            best = larger(nk_word(from), best, flip);
    }
    return best;
}

/* Sums of channels 0 and 2, 1 and 3. */
static void sums_of(const nk_operand *in, const taps *t, uint32_t channel, int32_t flip,
                    uint32_t sums[2]) {
    int16x2_t even = 0, odd = 0;
    for (int32_t iy = t->rows.first; iy < t->rows.last; ++iy) {
        const uint8_t *from =
            nk_row(in, t->image, iy) + (size_t)t->columns.first * in->pixel + channel;
        for (int32_t ix = t->columns.first; ix < t->columns.last; ++ix, from += in->pixel) {
            const uint32_t word = nk_word(from);
            even = __sadd16(even, flip ? nk_even_signed(word) : nk_even_unsigned(word));
            odd = __sadd16(odd, flip ? nk_odd_signed(word) : nk_odd_unsigned(word));
        }
    }
    sums[0] = (uint32_t)even, sums[1] = (uint32_t)odd;
}

static int32_t mean(int32_t sum, int32_t count) {
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

static void put_largest(const nk_stage *stage, uint32_t word, int32_t flip, uint8_t *to) {
    for (uint32_t m = 0; m < 4; ++m, word >>= 8)
        to[m] = nk_finish(stage, nk_value((uint8_t)word, flip));
}

/* Whether clamp and table of the call change nothing. */
static bool passes(const nk_stage *stage, int32_t flip) {
    return !stage->lut && stage->zero == 0 && stage->low == (flip ? INT8_MIN : 0) &&
           stage->high == (flip ? INT8_MAX : UINT8_MAX);
}

static bool runs(const nk_call *call, const nk_operand *in, const nk_operand *out) {
    const nk_window w = nk_undilated(call);
    return nk_is_byte(in) && nk_is_byte(out) && in->channels % 4 == 0 &&
           (uint64_t)w.kernel_h * (uint32_t)w.kernel_w <= TAPS;
}

static int pool(const nk_call *call, const nk_stage *stage, bool average) {
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    const nk_window w = nk_undilated(call);
    const int32_t flip = nk_flip(in);
    const bool plain = passes(stage, flip);
    if (!runs(call, in, out)) return 0;
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            taps t = {.image = image,
                      .rows = nk_span_of(y, w.stride_h, w.pad_top, w.kernel_h, in->height)};
            uint8_t *to = nk_row(out, image, y);
            if (nk_stopped(call)) return 1;
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                t.columns = nk_span_of((int32_t)x, w.stride_w, w.pad_left, w.kernel_w, in->width);
                const int32_t height = t.rows.last - t.rows.first,
                              width = t.columns.last - t.columns.first,
                              count = height > 0 && width > 0 ? height * width : 0;
                if (count == 0) return 0;
                for (uint32_t c = 0; c < out->channels; c += 4) {
                    if (average) {
                        uint32_t sums[2];
                        sums_of(in, &t, c, flip, sums);
                        for (uint32_t m = 0; m < 4; ++m)
                            to[c + m] = nk_finish(
                                stage, mean((int16_t)(sums[m & 1] >> (m & 2) * 8), count));
                        continue;
                    }
                    const uint32_t best = largest(in, &t, c, flip);
                    if (plain) memcpy(to + c, &best, sizeof best);
                    else put_largest(stage, best, flip, to + c);
                }
            }
        }
    }
    return 1;
}

int nk_dsp_max_pool2d(const nk_call *call, const nk_stage *stage) {
    return pool(call, stage, false);
}

int nk_dsp_avg_pool2d(const nk_call *call, const nk_stage *stage) {
    return pool(call, stage, true);
}

#endif
