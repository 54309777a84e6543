/* Inner loops for processors with Arm's DSP extension (Cortex-M33 and its like), chosen when the
 * firmware is compiled: two 16-bit products at a time, on the bytes and packings the portable loops
 * read.
 */
#ifndef NK_DSP_H
#define NK_DSP_H

#include <stdint.h>
#include <string.h>

#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)
#define NK_HAS_DSP 1

#include <arm_acle.h>

/* Four bytes from any address; Armv8-M loads unaligned words. */
static inline uint32_t nk_word(const void *from) {
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

/* Bytes 0 and 2 of a word as two 16-bit numbers, and bytes 1 and 3. Both operands of a product are
 * split this way, so nothing has to be put back in order. Assembly, because the compiler rotates in
 * an instruction of its own. */
static inline int16x2_t nk_even_signed(uint32_t word) { return __sxtb16((int8x4_t)word); }

static inline int16x2_t nk_odd_signed(uint32_t word) {
    int16x2_t pair;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

static inline int16x2_t nk_even_unsigned(uint32_t word) {
    return (int16x2_t)__uxtb16((uint8x4_t)word);
}

static inline int16x2_t nk_odd_unsigned(uint32_t word) {
    int16x2_t pair;
    __asm__("uxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

/* Of four 16-bit numbers in two words, 0 and 2, and 1 and 3: pairs that meet those of bytes. */
static inline int16x2_t nk_even_halves(uint32_t low, uint32_t high) {
    return (int16x2_t)((low & 0xFFFFu) | high << 16);
}

static inline int16x2_t nk_odd_halves(uint32_t low, uint32_t high) {
    return (int16x2_t)(low >> 16 | (high & 0xFFFF0000u));
}

/* The same number in both halves. */
static inline int16x2_t nk_twice(int32_t value) {
    return (int16x2_t)((uint32_t)(value & 0xFFFF) * 0x10001u);
}

#else
#define NK_HAS_DSP 0
#endif

#endif
