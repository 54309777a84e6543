/* add16, 16 elements at a time, in the definition's own steps. */
#include "loops.h"

#if NK_HAS_X86

#include "mbqm_avx2.h"

#define LANES 16

/* How an input comes to the common scale: the larger one's factor is 1/2, which of 15 bits of head
 * room leaves 14; any other; or scales that are powers of two, where it is a shift. */
enum { HALVED, SCALED, SHIFTED };

typedef struct {
    nk_scale8 scale;
    int how;
} side;

typedef struct {
    side a, b;
    nk_scale8 out;
    __m256i low, high;
    int shifts_only, subtract;
} constants;

static side side_of(const nk_add16_params *p, int32_t multiplier, int32_t shift) {
    side s;
    s.scale = nk_scale8_of(multiplier, shift);
    s.how = p->shifts_only ? SHIFTED : multiplier == 1 << 30 && shift == 0 ? HALVED : SCALED;
    return s;
}

static inline __attribute__((always_inline)) __m256i common(const side *s, const uint8_t *at) {
    const __m256i x = nk_halves8(at);
    if (s->how == HALVED) return _mm256_slli_epi32(x, 14);
    if (s->how == SHIFTED) return nk_rdp8(&s->scale, x);
    return nk_mbqm8(&s->scale, _mm256_slli_epi32(x, 15));
}

static inline __attribute__((always_inline)) __m256i sum8(const constants *k, const uint8_t *a,
                                                          const uint8_t *b) {
    const __m256i x = common(&k->a, a), y = common(&k->b, b);
    const __m256i sum = k->subtract ? _mm256_sub_epi32(x, y) : _mm256_add_epi32(x, y);
    return k->shifts_only ? sum : nk_mbqm8(&k->out, sum);
}

static inline __attribute__((always_inline)) __m256i block(const constants *k, const uint8_t *a,
                                                           const uint8_t *b) {
    return nk_words16(sum8(k, a, b), sum8(k, a + LANES, b + LANES), k->low, k->high);
}

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const constants k = *(const constants *)call->context;
    uint8_t left[2 * LANES], right[2 * LANES], result[2 * LANES];
    for (uint32_t m = 0; m < LANES && !step_a; ++m) memcpy(left + 2 * m, a, 2);
    for (uint32_t m = 0; m < LANES && !step_b; ++m) memcpy(right + 2 * m, b, 2);
    if (!step_a) a = left;
    if (!step_b) b = right;
    const size_t by_a = (size_t)step_a * LANES, by_b = (size_t)step_b * LANES;
    for (; count >= LANES; count -= LANES, a += by_a, b += by_b, out += 2 * LANES)
        _mm256_storeu_si256((__m256i *)(void *)out, block(&k, a, b));
    if (!count) return;
    if (step_a) memset(left, 0, sizeof left), memcpy(left, a, 2 * (size_t)count);
    if (step_b) memset(right, 0, sizeof right), memcpy(right, b, 2 * (size_t)count);
    _mm256_storeu_si256((__m256i *)(void *)result, block(&k, left, right));
    memcpy(out, result, 2 * (size_t)count);
}

int nk_add16_avx2(const nk_call *call) {
    const nk_add16_params *p = (const nk_add16_params *)(const void *)call->params;
    constants k;
    k.a = side_of(p, p->multiplier1, p->shift1);
    k.b = side_of(p, p->multiplier2, p->shift2);
    k.out = nk_scale8_of(p->output_multiplier, p->output_shift);
    k.low = _mm256_set1_epi16((int16_t)p->clamp_low);
    k.high = _mm256_set1_epi16((int16_t)p->clamp_high);
    k.shifts_only = p->shifts_only != 0, k.subtract = p->subtract != 0;
    nk_call own = *call;
    own.context = &k;
    nk_walk2(&own, add_run);
    return 1;
}

#endif
