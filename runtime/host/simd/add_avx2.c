/* add, 32 elements at a time. An input's difference d = x - zero has 9 bits, so its first rounding
 * (d * 2^20 * M + 2^30) >> 31 = (d * M + 2^10) >> 11 splits into 32-bit products: with M = H * 2^11
 * + L it is d * H + ((d * L + 2^10) >> 11). The second rounding is the stage's. Both results stay
 * below 2^29, their sum below 2^30, as the stage requires. */
#include "loops.h"

#if NK_HAS_X86

#include "stage_avx2.h"

#define LANES 32

/* One input on its way to the common scale. */
typedef struct {
    __m256i zero, high, low, round, shift, sign;
    int is_signed, plain; /* plain: the larger scale, whose rescaling is d * 2^19 */
} side;

static side side_of(int is_signed, int32_t zero, int32_t multiplier, int32_t shift) {
    side s = {.is_signed = is_signed, .plain = multiplier == 1 << 30 && shift == 0};
    s.zero = _mm256_set1_epi32(zero);
    s.high = _mm256_set1_epi32(multiplier >> 11);
    s.low = _mm256_set1_epi32(multiplier & 0x7FF);
    s.shift = _mm256_set1_epi32(-shift);
    s.round = _mm256_set1_epi32(shift ? (int32_t)(1u << (-shift - 1)) : 0);
    s.sign = _mm256_set1_epi32(shift ? -1 : 0);
    return s;
}

static inline __attribute__((always_inline)) __m256i scaled(const side *s, __m256i x,
                                                            const int plain) {
    const __m256i d = _mm256_sub_epi32(x, s->zero);
    if (plain) return _mm256_slli_epi32(d, 19);
    const __m256i low = _mm256_add_epi32(_mm256_mullo_epi32(d, s->low), _mm256_set1_epi32(1 << 10));
    const __m256i h = _mm256_add_epi32(_mm256_mullo_epi32(d, s->high), _mm256_srai_epi32(low, 11));
    const __m256i down = _mm256_and_si256(_mm256_srai_epi32(h, 31), s->sign);
    return _mm256_srav_epi32(_mm256_add_epi32(_mm256_add_epi32(h, s->round), down), s->shift);
}

typedef struct {
    side a, b;
    int subtract;
    nk_lanes8 lanes;
    nk_clamps8 clamps;
} sum;

/* LANES elements; a step of 0 repeats the input's one element. */
static inline __attribute__((always_inline)) void block(const sum *s, const uint8_t *a,
                                                        uint32_t step_a, const uint8_t *b,
                                                        uint32_t step_b, uint8_t *out,
                                                        const int plain_a, const int plain_b) {
    const __m256i offset = _mm256_set1_epi32(INT32_MIN);
    __m256i v[4];
    for (uint32_t i = 0; i < 4; ++i) {
        const __m256i x = step_a ? nk_widen8(a + 8 * i, s->a.is_signed)
                                 : _mm256_set1_epi32(nk_value(*a, s->a.is_signed ? 128 : 0));
        const __m256i y = step_b ? nk_widen8(b + 8 * i, s->b.is_signed)
                                 : _mm256_set1_epi32(nk_value(*b, s->b.is_signed ? 128 : 0));
        const __m256i left = scaled(&s->a, x, plain_a), right = scaled(&s->b, y, plain_b);
        const __m256i total =
            s->subtract ? _mm256_sub_epi32(left, right) : _mm256_add_epi32(left, right);
        v[i] = nk_rescale8(&s->lanes, _mm256_xor_si256(total, offset));
    }
    _mm256_storeu_si256((__m256i *)(void *)out, nk_bytes32(&s->clamps, v[0], v[1], v[2], v[3]));
}

static inline __attribute__((always_inline)) void run(const sum *s, const uint8_t *a,
                                                      uint32_t step_a, const uint8_t *b,
                                                      uint32_t step_b, uint8_t *out, uint32_t count,
                                                      const int plain_a, const int plain_b) {
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        block(s, a + i * step_a, step_a, b + i * step_b, step_b, out + i, plain_a, plain_b);
    if (i == count) return;
    uint8_t left[LANES] = {0}, right[LANES] = {0}, result[LANES];
    memcpy(left, a + i * step_a, step_a ? count - i : 1);
    memcpy(right, b + i * step_b, step_b ? count - i : 1);
    block(s, left, step_a, right, step_b, result, plain_a, plain_b);
    memcpy(out + i, result, count - i);
}

static sum sum_of(const nk_call *call, int *fits) {
    const nk_add_params *p = (const nk_add_params *)(const void *)call->params;
    const int is_signed = call->operands[NK_ADD_OUTPUT].dtype == NEUTRON_DTYPE_INT8;
    sum s = {.a = side_of(is_signed, p->zero1, p->multiplier1, p->shift1),
             .b = side_of(is_signed, p->zero2, p->multiplier2, p->shift2),
             .subtract = p->subtract};
    s.lanes =
        nk_lanes8_of(_mm256_set1_epi32(p->output_multiplier), _mm256_set1_epi32(-p->output_shift));
    *fits = nk_clamps8_of(&s.clamps, is_signed, p->output_zero, p->clamp_low, p->clamp_high);
    return s;
}

void nk_add_run_avx2(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                     uint32_t step_b, uint8_t *out, uint32_t count) {
    int fits;
    const sum s = sum_of(call, &fits);
    if (s.a.plain) run(&s, a, step_a, b, step_b, out, count, 1, 0);
    else if (s.b.plain) run(&s, a, step_a, b, step_b, out, count, 0, 1);
    else run(&s, a, step_a, b, step_b, out, count, 0, 0);
}

int nk_add_avx2(const nk_call *call) {
    int fits;
    sum_of(call, &fits);
    if (fits) nk_walk2(call, nk_add_run_avx2);
    return fits;
}

#endif
