/* Runs of elements, a block of some lanes at a time: whole blocks, then the rest in a block that is
 * filled up with zeros. The same for every instruction set; a loop file has the block. */
#ifndef NK_RUNS_H
#define NK_RUNS_H

#include "nk_simd.h"

#if NK_HAS_SIMD

#define NK_RUN_BYTES 32 /* of the largest block */

/* One block, from one input or from two. `constants` are the loop file's. */
typedef void (*nk_block1)(const void *constants, const uint8_t *in, uint8_t *out);
typedef void (*nk_block2)(const void *constants, const uint8_t *a, const uint8_t *b, uint8_t *out);

/* `item_in` and `item_out` are the bytes of an element. Always inlined, so that the block is too.
 */
static inline __attribute__((always_inline)) void nk_run_blocks1(
    nk_block1 block, const void *constants, const uint32_t lanes, const uint8_t *in, size_t item_in,
    uint8_t *out, size_t item_out, uint32_t count) {
    for (; count >= lanes; count -= lanes, in += lanes * item_in, out += lanes * item_out)
        block(constants, in, out);
    if (!count) return;
    uint8_t rest[NK_RUN_BYTES] = {0}, result[NK_RUN_BYTES];
    memcpy(rest, in, count * item_in);
    block(constants, rest, result);
    memcpy(out, result, count * item_out);
}

/* Elements of 16 bits; a step of 0 repeats the input's one element. */
static inline __attribute__((always_inline)) void nk_run_blocks2(
    nk_block2 block, const void *constants, const uint32_t lanes, const uint8_t *a, uint32_t step_a,
    const uint8_t *b, uint32_t step_b, uint8_t *out, uint32_t count) {
    uint8_t left[NK_RUN_BYTES] = {0}, right[NK_RUN_BYTES] = {0}, result[NK_RUN_BYTES];
    for (uint32_t m = 0; m < lanes && !step_a; ++m) memcpy(left + 2 * m, a, 2);
    for (uint32_t m = 0; m < lanes && !step_b; ++m) memcpy(right + 2 * m, b, 2);
    if (!step_a) a = left;
    if (!step_b) b = right;
    const size_t by_a = (size_t)step_a * lanes, by_b = (size_t)step_b * lanes;
    for (; count >= lanes; count -= lanes, a += by_a, b += by_b, out += 2 * (size_t)lanes)
        block(constants, a, b, out);
    if (!count) return;
    if (step_a) memcpy(left, a, 2 * (size_t)count);
    if (step_b) memcpy(right, b, 2 * (size_t)count);
    block(constants, left, right, result);
    memcpy(out, result, 2 * (size_t)count);
}

/* How add16 brings an input to the common scale: the larger one's factor is 1/2, which of 15 bits
 * of head room leaves 14; any other; or scales that are powers of two, where it is a shift. */
enum { NK_HALVED, NK_SCALED, NK_SHIFTED };

static inline int nk_add16_way(const nk_add16_params *p, int32_t multiplier, int32_t shift) {
    if (p->shifts_only) return NK_SHIFTED;
    return multiplier == 1 << 30 && shift == 0 ? NK_HALVED : NK_SCALED;
}

/* Whether requantize has a factor of 1, as from UINT8 to INT8 of the same scale: mbqm is the
 * identity then, and only the zero point moves. */
static inline int nk_moves_zero(const nk_requantize_params *p) {
    return p->multiplier == 1 << 30 && p->shift == 1;
}

/* Such elements one by one: the rest behind the blocks. */
static inline void nk_move_zero(const nk_requantize_params *p, int is_signed, const uint8_t *in,
                                uint8_t *out, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const int32_t v = nk_value(in[i], is_signed ? 128 : 0) - p->input_zero + p->output_zero;
        out[i] = (uint8_t)nk_clamp(v, p->clamp_low, p->clamp_high);
    }
}

#endif
#endif
