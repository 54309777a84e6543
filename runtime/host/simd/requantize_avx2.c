/* requantize, 32 elements at a time. */
#include "loops.h"

#if NK_HAS_X86

#include "runs.h"
#include "stage_avx2.h"

#define LANES 32
#define LEFT_MOST 20 /* 9-bit differences shifted this far stay below the stage's 2^30 */

typedef struct {
    __m256i zero;
    __m128i left;
    int is_signed;
    nk_lanes8 lanes;
    nk_clamps8 clamps;
} constants;

static inline __attribute__((always_inline)) void block(const constants *k, const uint8_t *in,
                                                        uint8_t *out, const int is_signed) {
    const __m256i offset = _mm256_set1_epi32(INT32_MIN);
    __m256i v[4];
    for (uint32_t i = 0; i < 4; ++i) {
        const __m256i d =
            _mm256_sll_epi32(_mm256_sub_epi32(nk_widen8(in + 8 * i, is_signed), k->zero), k->left);
        v[i] = nk_rescale8(&k->lanes, _mm256_xor_si256(d, offset));
    }
    _mm256_storeu_si256((__m256i *)(void *)out, nk_bytes32(&k->clamps, v[0], v[1], v[2], v[3]));
}

static inline __attribute__((always_inline)) void signed_block(const void *constants_of_run,
                                                               const uint8_t *in, uint8_t *out) {
    block(constants_of_run, in, out, 1);
}

static inline __attribute__((always_inline)) void unsigned_block(const void *constants_of_run,
                                                                 const uint8_t *in, uint8_t *out) {
    block(constants_of_run, in, out, 0);
}

static constants constants_of(const nk_call *call, int *fits) {
    const nk_requantize_params *p = (const nk_requantize_params *)(const void *)call->params;
    constants k = {.zero = _mm256_set1_epi32(p->input_zero)};
    k.left = _mm_cvtsi32_si128(nk_max(p->shift, 0));
    k.is_signed = call->operands[NK_REQUANTIZE_INPUT].dtype == NEUTRON_DTYPE_INT8;
    k.lanes =
        nk_lanes8_of(_mm256_set1_epi32(p->multiplier), _mm256_set1_epi32(nk_max(-p->shift, 0)));
    *fits =
        nk_clamps8_of(&k.clamps, call->operands[NK_REQUANTIZE_OUTPUT].dtype == NEUTRON_DTYPE_INT8,
                      p->output_zero, p->clamp_low, p->clamp_high) &&
        p->shift <= LEFT_MOST;
    return k;
}

static void move_zero(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    const nk_requantize_params *p = (const nk_requantize_params *)(const void *)call->params;
    const int is_signed = call->operands[NK_REQUANTIZE_INPUT].dtype == NEUTRON_DTYPE_INT8;
    const int32_t down = call->operands[NK_REQUANTIZE_OUTPUT].dtype == NEUTRON_DTYPE_INT8 ? 0 : 128;
    const __m256i by = _mm256_set1_epi16((int16_t)(p->output_zero - p->input_zero - down));
    const __m128i low = _mm_set1_epi8((char)(p->clamp_low - down)),
                  high = _mm_set1_epi8((char)(p->clamp_high - down));
    const __m128i flip = _mm_set1_epi8((char)down);
    uint32_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(in + i));
        const __m256i moved = _mm256_add_epi16(
            is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes), by);
        const __m128i packed =
            _mm_packs_epi16(_mm256_castsi256_si128(moved), _mm256_extracti128_si256(moved, 1));
        _mm_storeu_si128((__m128i *)(void *)(out + i),
                         _mm_xor_si128(_mm_min_epi8(_mm_max_epi8(packed, low), high), flip));
    }
    nk_move_zero(p, is_signed, in + i, out + i, count - i);
}

static void rescale(const nk_call *call, const uint8_t *in, uint8_t *out, uint32_t count) {
    int fits;
    const constants k = constants_of(call, &fits);
    if (k.is_signed) nk_run_blocks1(signed_block, &k, LANES, in, 1, out, 1, count);
    else nk_run_blocks1(unsigned_block, &k, LANES, in, 1, out, 1, count);
}

int nk_requantize_avx2(const nk_call *call) {
    int fits;
    constants_of(call, &fits);
    const int moves = nk_moves_zero((const nk_requantize_params *)(const void *)call->params);
    const nk_operand *in = &call->operands[NK_REQUANTIZE_INPUT],
                     *out = &call->operands[NK_REQUANTIZE_OUTPUT];
    if (fits) nk_walk1(call, in, out, moves ? move_zero : rescale);
    return fits;
}

#endif
