/* add16, 16 elements at a time, in the definition's own steps. */
#include "loops.h"

#if NK_HAS_X86

#include "mbqm_avx2.h"
#include "runs.h"

#define LANES 16

typedef struct {
    nk_scale8 scale;
    int way; /* NK_HALVED, NK_SCALED or NK_SHIFTED */
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
    s.way = nk_add16_way(p, multiplier, shift);
    return s;
}

static inline __attribute__((always_inline)) __m256i common(const side *s, const uint8_t *at) {
    const __m256i x = nk_halves8(at);
    if (s->way == NK_HALVED) return _mm256_slli_epi32(x, 14);
    if (s->way == NK_SHIFTED) return nk_rdp8(&s->scale, x);
    return nk_mbqm8(&s->scale, _mm256_slli_epi32(x, 15));
}

static inline __attribute__((always_inline)) __m256i sum8(const constants *k, const uint8_t *a,
                                                          const uint8_t *b) {
    const __m256i x = common(&k->a, a), y = common(&k->b, b);
    const __m256i sum = k->subtract ? _mm256_sub_epi32(x, y) : _mm256_add_epi32(x, y);
    return k->shifts_only ? sum : nk_mbqm8(&k->out, sum);
}

static inline __attribute__((always_inline)) void block(const void *constants_of_run,
                                                        const uint8_t *a, const uint8_t *b,
                                                        uint8_t *out) {
    const constants *k = constants_of_run;
    const __m256i words = nk_words16(sum8(k, a, b), sum8(k, a + LANES, b + LANES), k->low, k->high);
    _mm256_storeu_si256((__m256i *)(void *)out, words);
}

static void add_run(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                    uint32_t step_b, uint8_t *out, uint32_t count) {
    const constants k = *(const constants *)call->context;
    nk_run_blocks2(block, &k, LANES, a, step_a, b, step_b, out, count);
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
