/* Assembly, because all fourteen registers are in use: r0 inputs, r1 weights, r2 count, r3 and r12
 * weights of two channels, lr half of them, r4 to r7 inputs, r8 to r11 sums; the job is on the
 * stack. Two quads per turn take 30 instructions for 32 products of two pixels. */
#include "products_dsp.h"

#include <stddef.h>

#if NK_HAS_DSP

/* Two channels, whose words are in r3 and r12, with both pixels. */
#define TWO_PIXELS \
    "ldmia r0!, {r4-r7}\n" \
    "sxtb16 lr, r3\n" \
    "sxtb16 r3, r3, ror #8\n" \
    "smlad r8, lr, r4, r8\n" \
    "smlad r9, lr, r6, r9\n" \
    "sxtb16 lr, r12\n" \
    "smlad r8, r3, r5, r8\n" \
    "smlad r9, r3, r7, r9\n" \
    "sxtb16 r12, r12, ror #8\n" \
    "smlad r10, lr, r4, r10\n" \
    "smlad r11, lr, r6, r11\n" \
    "smlad r10, r12, r5, r10\n" \
    "smlad r11, r12, r7, r11\n"

/* With the first alone. */
#define ONE_PIXEL \
    "ldrd r4, r5, [r0], #16\n" \
    "sxtb16 lr, r3\n" \
    "sxtb16 r3, r3, ror #8\n" \
    "smlad r8, lr, r4, r8\n" \
    "sxtb16 lr, r12\n" \
    "smlad r8, r3, r5, r8\n" \
    "sxtb16 r12, r12, ror #8\n" \
    "smlad r10, lr, r4, r10\n" \
    "smlad r10, r12, r5, r10\n"

#define PAIRS(products) \
    __asm__ volatile("push {r0, r4-r11, lr}\n" \
                     "0:\n" \
                     "ldrd r2, lr, [r0, #12]\n" \
                     "cmp r2, #0\n" \
                     "beq 3f\n" \
                     "ldr r8, [r2], #4\n" \
                     "ldr r10, [r2], #4\n" \
                     "str r2, [r0, #12]\n" \
                     "mov r9, r8\n" \
                     "mov r11, r10\n" \
                     "4:\n" \
                     "ldmia r0, {r0-r2}\n" products "ldr r0, [sp]\n" \
                     "ldr r12, [r0, #16]\n" \
                     "stmia r12!, {r8-r11}\n" \
                     "ldr r1, [r0, #20]\n" \
                     "subs r1, #1\n" \
                     "strd r12, r1, [r0, #16]\n" \
                     "ldr r1, [r0, #4]\n" \
                     "ldrd r2, r3, [r0, #24]\n" \
                     "add r1, r2\n" \
                     "str r1, [r0, #4]\n" \
                     "strd r3, r2, [r0, #24]\n" \
                     "bne 0b\n" \
                     "pop {r0, r4-r11, pc}\n" \
                     "3:\n" \
                     "ldmia lr, {r8-r11}\n" \
                     "b 4b\n")

#define BY4(pixels) \
    "lsrs r2, r2, #1\n" \
    "bcc 1f\n" \
    "ldrd r3, r12, [r1], #16\n" pixels "cmp r2, #0\n" \
    "beq 2f\n" \
    "1:\n" \
    "ldrd r3, r12, [r1], #16\n" pixels "ldrd r3, r12, [r1], #16\n" pixels "subs r2, #1\n" \
    "bne 1b\n" \
    "2:\n"

#define BY8(pixels) \
    "1:\n" \
    "ldr r3, [r1]\n" \
    "ldr r12, [r1, #8]\n" pixels "ldr r3, [r1, #4]\n" \
    "ldr r12, [r1, #12]\n" pixels "adds r1, #64\n" \
    "subs r2, #2\n" \
    "bne 1b\n"

_Static_assert(offsetof(nk_products_job, biases) == 12 && offsetof(nk_products_job, pairs) == 20 &&
                   offsetof(nk_products_job, next) == 24,
               "what the assembly reads");

#define DEFINE(name, body) \
    __attribute__((naked)) void name(nk_products_job *job) { \
        (void)job; \
        PAIRS(body); \
    }

DEFINE(nk_products_two_by4, BY4(TWO_PIXELS))
DEFINE(nk_products_two_by8, BY8(TWO_PIXELS))
DEFINE(nk_products_one_by4, BY4(ONE_PIXEL))
DEFINE(nk_products_one_by8, BY8(ONE_PIXEL))

#endif
