/* Assembly, because all fourteen registers are in use: r0 rows, r1 offset, r2 weights, r3 columns
 * left, r4 the inputs, r5 and r6 four of them, r12 and r7 their weights, r8 to r11 sums, lr the
 * step; rows left and columns are on the stack. A tap takes nine instructions. */
#include <stddef.h>

#include "lane_sums_dsp.h"

#if NK_HAS_DSP

#define TAP(extend) \
    "ldr r5, [r4]\n" \
    "add r4, lr\n" \
    "ldrd r12, r7, [r2], #8\n" extend " r6, r5\n" extend " r5, r5, ror #8\n" \
    "smlabb r8, r6, r12, r8\n" \
    "smlabb r9, r5, r7, r9\n" \
    "smlatt r10, r6, r12, r10\n" \
    "smlatt r11, r5, r7, r11\n"

#define COLUMNS(extend) \
    "ldr r3, [sp, #4]\n" \
    "2:\n" TAP(extend) "subs r3, #1\n" \
                       "bne 2b\n"

#define ROWS(columns) \
    __asm__ volatile("push {r4-r11, lr}\n" \
                     "ldr r4, [sp, #36]\n" \
                     "ldmia r4, {r8-r11}\n" \
                     "ldmia r3, {r5, r6, lr}\n" \
                     "push {r5, r6}\n" \
                     "1:\n" \
                     "ldr r4, [r0], #4\n" \
                     "add r4, r1\n" columns "ldr r5, [sp]\n" \
                     "subs r5, #1\n" \
                     "str r5, [sp]\n" \
                     "bne 1b\n" \
                     "add sp, #8\n" \
                     "ldr r4, [sp, #36]\n" \
                     "stmia r4, {r8-r11}\n" \
                     "pop {r4-r11, pc}\n")

#define DEFINE(name, columns) \
    __attribute__((naked)) NK_LANE_SUMS(name) { \
        (void)rows, (void)offset, (void)weights, (void)window, (void)sums; \
        ROWS(columns); \
    }

DEFINE(nk_lane_sums_signed, COLUMNS("sxtb16"))
DEFINE(nk_lane_sums_unsigned, COLUMNS("uxtb16"))
DEFINE(nk_lane_sums3_signed, TAP("sxtb16") TAP("sxtb16") TAP("sxtb16"))
DEFINE(nk_lane_sums3_unsigned, TAP("uxtb16") TAP("uxtb16") TAP("uxtb16"))

#endif
