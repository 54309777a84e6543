/* max_pool2d, avg_pool2d and pool_sum, channels side by side. Channels that are no multiple of the
 * lanes end with a vector that reaches back over finished ones; images with fewer channels than
 * lanes are left to the definition. */
#include "loops.h"

#if NK_HAS_X86

#include <immintrin.h>

#define BYTES 16 /* channels of a maximum at a time */
#define WORDS 8  /* channels of a sum at a time */
/* Up to this many taps the float quotient below is exact. */
#define MAX_TAPS 1024

typedef struct {
    nk_span rows, columns;
} taps;

static __m128i load16(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* Largest of the taps for 16 channels; bytes are flipped so that they order as signed. */
static inline __m128i max16(const nk_operand *in, uint32_t image, taps t, uint32_t channel,
                            __m128i flip) {
    __m128i best = _mm_set1_epi8(-128);
    for (int32_t iy = t.rows.first; iy < t.rows.last; ++iy) {
        const uint8_t *at = nk_row(in, image, iy) + (size_t)t.columns.first * in->pixel + channel;
        for (int32_t ix = t.columns.first; ix < t.columns.last; ++ix, at += in->pixel)
            best = _mm_max_epi8(best, _mm_xor_si128(load16(at), flip));
    }
    return best;
}

static void apply_lut(const nk_stage *stage, uint8_t *to, uint32_t count) {
    if (stage->lut)
        for (uint32_t c = 0; c < count; ++c) to[c] = stage->lut[to[c]];
}

/* 1 when the clamp is of the byte type, as the compiler makes it. */
static int clamp_fits(const nk_stage *stage, int32_t lowest) {
    return stage->low >= lowest && stage->low <= stage->high && stage->high <= lowest + 255 &&
           stage->zero == 0;
}

int nk_max_pool2d_avx2(const nk_call *call, const nk_stage *stage) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_max_pool2d_params *p = (const nk_max_pool2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    const int32_t down = nk_flip(in) ? 0 : 128;
    if (in->dtype != out->dtype || out->channels < BYTES || !clamp_fits(stage, down - 128))
        return 0;
    const __m128i flip = _mm_set1_epi8((char)down);
    const __m128i low = _mm_set1_epi8((char)(stage->low - down)),
                  high = _mm_set1_epi8((char)(stage->high - down));
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *to = nk_row(out, image, y);
            taps t = {.rows = nk_span_of(y, p->stride_h, p->pad_top, p->kernel_h, in->height)};
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                t.columns =
                    nk_span_of((int32_t)x, p->stride_w, p->pad_left, p->kernel_w, in->width);
                for (uint32_t c = 0; c < out->channels; c += BYTES) {
                    const uint32_t from = c + BYTES <= out->channels ? c : out->channels - BYTES;
                    const __m128i best =
                        _mm_min_epi8(_mm_max_epi8(max16(in, image, t, from, flip), low), high);
                    _mm_storeu_si128((__m128i *)(void *)(to + from), _mm_xor_si128(best, flip));
                }
                apply_lut(stage, to, out->channels);
            }
        }
    }
    return 1;
}

static inline __m256i widen(const uint8_t *from, int is_signed) {
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)from);
    return is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}

static inline __m256i sum8(const nk_operand *in, uint32_t image, taps t, uint32_t channel,
                           int is_signed) {
    __m256i sum = _mm256_setzero_si256();
    for (int32_t iy = t.rows.first; iy < t.rows.last; ++iy) {
        const uint8_t *at = nk_row(in, image, iy) + (size_t)t.columns.first * in->pixel + channel;
        for (int32_t ix = t.columns.first; ix < t.columns.last; ++ix, at += in->pixel)
            sum = _mm256_add_epi32(sum, widen(at, is_signed));
    }
    return sum;
}

/* (|sum| + n/2) / n with the sign put back. The dividend is below 2^19, exact in float; half a step
 * of 1/n is added, so the product lies at least 1/(2n) >= 2^-11 from every integer, and its error
 * is below 2^-14: truncation finds the quotient. */
static inline __m256i mean8(__m256i sum, int32_t n) {
    const __m256 inverse = _mm256_set1_ps(1.0f / (float)n), half = _mm256_set1_ps(0.5f / (float)n);
    const __m256i dividend = _mm256_add_epi32(_mm256_abs_epi32(sum), _mm256_set1_epi32(n / 2));
    const __m256 quotient =
        _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(dividend), inverse), half);
    return _mm256_sign_epi32(_mm256_cvttps_epi32(quotient), sum);
}

int nk_avg_pool2d_avx2(const nk_call *call, const nk_stage *stage) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_avg_pool2d_params *p = (const nk_avg_pool2d_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_AVG_POOL2D_INPUT],
                     *out = &call->operands[NK_AVG_POOL2D_OUTPUT];
    const int is_signed = nk_flip(in) != 0;
    if (in->dtype != out->dtype || out->channels < WORDS ||
        !clamp_fits(stage, is_signed ? -128 : 0))
        return 0;
    if ((uint64_t)p->kernel_h * (uint32_t)p->kernel_w > MAX_TAPS) return 0;
    const __m256i low = _mm256_set1_epi32(stage->low), high = _mm256_set1_epi32(stage->high);
    const __m256i pick = _mm256_set1_epi32(0x0C080400); /* the low byte of each lane of 128 bits */
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *to = nk_row(out, image, y);
            taps t = {.rows = nk_span_of(y, p->stride_h, p->pad_top, p->kernel_h, in->height)};
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                t.columns =
                    nk_span_of((int32_t)x, p->stride_w, p->pad_left, p->kernel_w, in->width);
                const int32_t n = nk_max(t.rows.last - t.rows.first, 0) *
                                  nk_max(t.columns.last - t.columns.first, 0);
                for (uint32_t c = 0; c < out->channels; c += WORDS) {
                    const uint32_t from = c + WORDS <= out->channels ? c : out->channels - WORDS;
                    __m256i v =
                        n ? mean8(sum8(in, image, t, from, is_signed), n) : _mm256_setzero_si256();
                    v = _mm256_shuffle_epi8(_mm256_min_epi32(_mm256_max_epi32(v, low), high), pick);
                    const uint32_t bytes[2] = {(uint32_t)_mm256_extract_epi32(v, 0),
                                               (uint32_t)_mm256_extract_epi32(v, 4)};
                    memcpy(to + from, bytes, sizeof bytes);
                }
                apply_lut(stage, to, out->channels);
            }
        }
    }
    return 1;
}

int nk_pool_sum_avx2(const nk_call *call) {
    if (call->keep_running != NULL) return 0; /* the portable loop looks at the clock */
    const nk_operand *in = &call->operands[NK_POOL_SUM_INPUT],
                     *out = &call->operands[NK_POOL_SUM_OUTPUT];
    const int is_signed = nk_flip(in) != 0;
    const uint32_t whole = out->channels / WORDS * WORDS;
    uint8_t *sums = nk_row(out, 0, 0);
    if (whole != out->channels) return 0;
    for (uint32_t c = 0; c < whole; c += WORDS) {
        __m256i *at = (__m256i *)(void *)(sums + 4 * (size_t)c);
        __m256i sum = call->row0 == 0 ? _mm256_setzero_si256() : _mm256_loadu_si256(at);
        for (int32_t y = call->row0; y < call->row1; ++y) {
            const taps row = {.rows = {y, y + 1}, .columns = {0, (int32_t)in->width}};
            sum = _mm256_add_epi32(sum, sum8(in, 0, row, c, is_signed));
        }
        _mm256_storeu_si256(at, sum);
    }
    return 1;
}

#endif
