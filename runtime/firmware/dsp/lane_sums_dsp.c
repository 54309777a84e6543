/* Assembly, because all fourteen registers are in use: r0 a row of the window, r1 and r3 weights of
 * a tap, r2 the next weights, r4 to r7 the first pixel's sums, r8 to r11 the second's, r12 and lr
 * inputs; the record is on the stack. A tap takes eleven instructions for eight products. Then
 * sums become outputs in their registers: r1 to r3 are a channel's scale, lr the record. */
#include "lane_sums_dsp.h"

#include <stddef.h>

#if NK_HAS_DSP

_Static_assert(offsetof(nk_lane_row, biases) == 16 && offsetof(nk_lane_row, scales) == 20 &&
                   offsetof(nk_lane_row, low) == 24 && offsetof(nk_lane_row, to) == 32 &&
                   offsetof(nk_lane_row, twos) == 40,
               "what the assembly reads");

#define TAP(first, second) \
    "ldrd r1, r3, [r2], #8\n" \
    "ldrd r12, lr, [r0, #" #first "]\n" \
    "smlabb r4, r12, r1, r4\n" \
    "smlabb r5, lr, r3, r5\n" \
    "smlatt r6, r12, r1, r6\n" \
    "smlatt r7, lr, r3, r7\n" \
    "ldrd r12, lr, [r0, #" #second "]\n" \
    "smlabb r8, r12, r1, r8\n" \
    "smlabb r9, lr, r3, r9\n" \
    "smlatt r10, r12, r1, r10\n" \
    "smlatt r11, lr, r3, r11\n"

#define ROW_BY1 TAP(0, 8) TAP(8, 16) TAP(16, 24)
#define ROW_BY2 TAP(0, 16) TAP(8, 24) TAP(16, 32)

#define RESCALE(sum) \
    "lsl " sum ", #1\n" \
    "smmulr " sum ", " sum ", r1\n" \
    "add " sum ", " sum ", " sum ", asr #31\n" \
    "add " sum ", r2\n" \
    "asr " sum ", r3\n" \
    "ssat " sum ", #8, " sum "\n"

#define CHANNEL(first, second) "ldmia r0!, {r1-r3}\n" RESCALE(first) RESCALE(second)

/* Four bytes in the first register, within bounds in r1 and r2. */
#define PACK(a, b, c, d) \
    "bfi " a ", " b ", #8, #8\n" \
    "bfi " a ", " c ", #16, #8\n" \
    "bfi " a ", " d ", #24, #8\n" \
    "ssub8 r3, " a ", r1\n" \
    "sel " a ", " a ", r1\n" \
    "ssub8 r3, r2, " a "\n" \
    "sel " a ", " a ", r2\n"

#define TWOS(row) \
    __asm__ volatile( \
        "push {r0, r4-r11, lr}\n" \
        "1:\n" \
        "ldr r2, [r0, #16]\n" \
        "ldmia r2, {r8-r11}\n" \
        "ldmia r2!, {r4-r7}\n" \
        "ldr r0, [r0]\n" row "ldr r0, [sp]\n" \
        "ldr r0, [r0, #4]\n" row "ldr r0, [sp]\n" \
        "ldr r0, [r0, #8]\n" row "ldr lr, [sp]\n" \
        "ldr r0, [lr, #20]\n" CHANNEL("r4", "r8") CHANNEL("r5", "r9") CHANNEL("r6", "r10") \
            CHANNEL("r7", "r11") "ldrd r1, r2, [lr, #24]\n" PACK("r4", "r5", "r6", "r7") \
                PACK("r8", "r9", "r10", "r11") "ldrd r0, r3, [lr, #32]\n" \
                                               "str r4, [r0]\n" \
                                               "str r8, [r0, r3]\n" \
                                               "add r0, r0, r3, lsl #1\n" \
                                               "str r0, [lr, #32]\n" \
                                               "ldmia lr, {r4-r7}\n" \
                                               "add r4, r7\n" \
                                               "add r5, r7\n" \
                                               "add r6, r7\n" \
                                               "stmia lr, {r4-r6}\n" \
                                               "ldr r3, [lr, #40]\n" \
                                               "mov r0, lr\n" \
                                               "subs r3, #1\n" \
                                               "str r3, [lr, #40]\n" \
                                               "bne 1b\n" \
                                               "pop {r0, r4-r11, pc}\n")

__attribute__((naked)) void nk_lane_row3x3(nk_lane_row *row) {
    (void)row;
    TWOS(ROW_BY1);
}

__attribute__((naked)) void nk_lane_row3x3_by2(nk_lane_row *row) {
    (void)row;
    TWOS(ROW_BY2);
}

#endif
