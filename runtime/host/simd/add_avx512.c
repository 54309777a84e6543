/* add in float with 16 fraction bits, checked, 64 elements at a time.
 *
 * Let Y = d1 * F1 + d2 * F2 be the sum in units of the output, with the F of the fixed-point
 * factors as real numbers: F = M * 2^(shift - 11) * Mo * 2^(shift_o - 31). Each input's two
 * roundings are off by at most 1 together, their sum by 2; the output's factor shrinks that to 2 *
 * 2^-eo, and its own first rounding adds 2^-eo / 2, eo = -shift_o. The definition rounds that
 * number to the nearest integer. Here i = (Y + zero point + 1/2) * 2^16 + half is computed in float
 * and truncated; `half` bounds the distance between the two: 2.5 * 2^(16-eo), 2^-24 of each number
 * that is rounded, 1 for the truncation. Where i mod 2^16 is at least 2 * half, no integer lies
 * between them, nor does a tie, and i >> 16 is the rounded sum. Where it is not, the integer loop
 * does the block. */
#include "loops.h"

#if NK_HAS_X86

#include <immintrin.h>
#include <math.h>

#include "stage_avx512.h"

#define LANES 64
#define NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
/* 2^-6 of the outputs would be doubtful: then the integer loop is faster */
#define MOST_DOUBT 1024.0

typedef struct {
    __m512 first, second, rest; /* 2^16 times the F, and what does not depend on the inputs */
    __m512i doubt;
    nk_clamps clamps;
} constants;

/* 1 when the float form may be used. */
static int constants_of(const nk_call *call, constants *k) {
    const nk_add_params *p = (const nk_add_params *)(const void *)call->params;
    const int32_t down = call->operands[NK_ADD_OUTPUT].dtype == NEUTRON_DTYPE_INT8 ? 0 : 128;
    const int32_t zero = p->output_zero - down, low = p->clamp_low - down,
                  high = p->clamp_high - down;
    if (zero < -128 || zero > 127 || low < -128 || low > high || high > 127) return 0;
    const double out = ldexp(p->output_multiplier, p->output_shift - 31 + 16);
    const double f1 = ldexp(p->multiplier1, p->shift1 - 11) * out;
    const double f2 = ldexp(p->multiplier2, p->shift2 - 11) * out * (p->subtract ? -1.0 : 1.0);
    const double rest = 65536.0 * zero + 32768.0 - p->zero1 * f1 - p->zero2 * f2;
    const double x = down ? 255 : 128, a1 = x * fabs(f1), a2 = x * fabs(f2),
                 a3 = fabs(rest) + MOST_DOUBT;
    /* Rounded to nearest: each factor with its term, the constant, the inner sum, the outer one. */
    const double rounded = ldexp(a1 + a2 + a3 + (a2 + a3) + (a1 + a2 + a3), -24);
    const double half = ceil(ldexp(2.5, 16 + p->output_shift) + rounded + 1);
    if (half > MOST_DOUBT / 2 || a1 + a2 + a3 >= 0x1p30) return 0;
    k->first = _mm512_set1_ps((float)f1);
    k->second = _mm512_set1_ps((float)f2);
    k->rest = _mm512_set1_ps((float)(rest + half));
    k->doubt = _mm512_set1_epi16((int16_t)(2 * half));
    k->clamps.low = _mm512_set1_epi8((char)low);
    k->clamps.high = _mm512_set1_epi8((char)high);
    k->clamps.flip = _mm512_set1_epi8((char)down);
    k->clamps.open = !down && low == -128 && high == 127;
    return 1;
}

static inline __attribute__((always_inline)) __m512 widen(const uint8_t *from, uint32_t step,
                                                          const int is_signed) {
    if (!step) return _mm512_set1_ps((float)nk_value(*from, is_signed ? 128 : 0));
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi8_epi32(bytes)
                                        : _mm512_cvtepu8_epi32(bytes));
}

/* The sums of LANES elements in *sums; 0 when one is doubtful. */
static inline __attribute__((always_inline)) int block(const constants *k, const uint8_t *a,
                                                       uint32_t step_a, const uint8_t *b,
                                                       uint32_t step_b, __m512i *sums,
                                                       const int is_signed, const int open) {
    __m512i v[4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
        const __m512 x = widen(a + 16 * i * step_a, step_a, is_signed),
                     y = widen(b + 16 * i * step_b, step_b, is_signed);
        const __m512 inner = _mm512_fmadd_round_ps(y, k->second, k->rest, NEAREST);
        v[i] = _mm512_cvttps_epi32(_mm512_fmadd_round_ps(x, k->first, inner, NEAREST));
    }
    const __m512i least =
        _mm512_min_epu16(_mm512_min_epu16(v[0], v[1]), _mm512_min_epu16(v[2], v[3]));
    if (__builtin_expect(_mm512_mask_cmplt_epu16_mask(0x55555555, least, k->doubt) != 0, 0))
        return 0;
    const __m512i bytes = nk_upper_bytes(v, 0);
    const nk_clamps *c = &k->clamps;
    *sums =
        open ? bytes
             : _mm512_xor_si512(_mm512_min_epi8(_mm512_max_epi8(bytes, c->low), c->high), c->flip);
    return 1;
}

static inline __attribute__((always_inline)) void run(const nk_call *call, const constants *of,
                                                      const uint8_t *a, uint32_t step_a,
                                                      const uint8_t *b, uint32_t step_b,
                                                      uint8_t *out, uint32_t count,
                                                      const int is_signed, const int open) {
    const constants k = *of;
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        __m512i sums;
        const uint8_t *left = a + i * step_a, *right = b + i * step_b;
        if (block(&k, left, step_a, right, step_b, &sums, is_signed, open))
            _mm512_storeu_si512(out + i, sums);
        else nk_add_run_avx2(call, left, step_a, right, step_b, out + i, LANES);
    }
    if (i < count)
        nk_add_run_avx2(call, a + i * step_a, step_a, b + i * step_b, step_b, out + i, count - i);
}

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const constants *k = call->context;
    const int is_signed = nk_flip(&call->operands[NK_ADD_OUTPUT]) != 0;
    if (is_signed && step_a == 1 && step_b == 1 && k->clamps.open)
        run(call, k, a, 1, b, 1, out, count, 1, 1);
    else if (is_signed) run(call, k, a, step_a, b, step_b, out, count, 1, 0);
    else run(call, k, a, step_a, b, step_b, out, count, 0, 0);
}

int nk_add_avx512(const nk_call *call) {
    constants k;
    if (!constants_of(call, &k)) return nk_add_avx2(call);
    nk_call own = *call;
    own.context = &k;
    nk_walk2(&own, add_run);
    return 1;
}

#endif
