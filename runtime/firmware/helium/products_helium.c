/* Assembly, because eight sums take all registers with even numbers, where VMLADAVA adds up; r1 are
 * weights, r3 and r5 inputs, r7 the count, r9 the job, r11 its sums. VLD4 puts sixteen inputs of
 * each of four channels into one vector; 16 instructions make 128 products of two pixels.
 *
 *   weights  a0 b0 c0 d0 a1 b1 c1 d1 a2 ... d3
 *   vectors  q0: a0 a1 a2 a3   q1: b0 b1 b2 b3   q2: c0 c1 c2 c3   q3: d0 d1 d2 d3
 */
#include "products_helium.h"

#include <stddef.h>

#if NK_HAS_HELIUM

_Static_assert(offsetof(nk_four_products, weights) == 8 &&
                   offsetof(nk_four_products, quads) == 12 &&
                   offsetof(nk_four_products, sums) == 16 &&
                   offsetof(nk_four_products, fours) == 20 &&
                   offsetof(nk_four_products, next) == 24,
               "what the assembly reads");

#define WEIGHTS \
    "vld40.32 {q0, q1, q2, q3}, [r1]\n" \
    "vld41.32 {q0, q1, q2, q3}, [r1]\n" \
    "vld42.32 {q0, q1, q2, q3}, [r1]\n" \
    "vld43.32 {q0, q1, q2, q3}, [r1]!\n"

/* The same of one to three words per channel; the others are 0. */
#define LAST_WEIGHTS \
    "vpst\nvldrwt.u32 q0, [r1, q6, uxtw #2]\nadds r1, #4\n" \
    "vpst\nvldrwt.u32 q1, [r1, q6, uxtw #2]\nadds r1, #4\n" \
    "vpst\nvldrwt.u32 q2, [r1, q6, uxtw #2]\nadds r1, #4\n" \
    "vpst\nvldrwt.u32 q3, [r1, q6, uxtw #2]\n"

#define FIRST_PIXEL \
    "vmladava.s8 r0, q0, q4\n" \
    "vmladava.s8 r2, q1, q4\n" \
    "vmladava.s8 r4, q2, q4\n" \
    "vmladava.s8 r6, q3, q4\n"

#define SECOND_PIXEL \
    "vmladava.s8 r8, q0, q5\n" \
    "vmladava.s8 r10, q1, q5\n" \
    "vmladava.s8 r12, q2, q5\n" \
    "vmladava.s8 lr, q3, q5\n"

#define LOAD_FIRST "ldrd r0, r2, [r11]\nldrd r4, r6, [r11, #8]\n"
#define LOAD_SECOND "ldrd r8, r10, [r11, #16]\nldrd r12, lr, [r11, #24]\n"
#define STORE_FIRST "strd r0, r2, [r11]\nstrd r4, r6, [r11, #8]\n"
#define STORE_SECOND "strd r8, r10, [r11, #16]\nstrd r12, lr, [r11, #24]\n"

/* q6 counts in fours from 0, in words: the distance of a channel's words. */
#define FOURS(load, inputs, last_inputs, products, store) \
    __asm__ volatile("push {r4-r11, lr}\n" \
                     "vpush {d8-d13}\n" \
                     "mov r9, r0\n" \
                     "movs r2, #0\n" \
                     "vidup.u32 q6, r2, #4\n" \
                     "1:\n" \
                     "ldrd r3, r5, [r9]\n" \
                     "ldrd r1, r7, [r9, #8]\n" \
                     "ldr r11, [r9, #16]\n" load "lsrs r7, r7, #2\n" \
                     "beq 3f\n" \
                     "2:\n" WEIGHTS inputs products "subs r7, #1\n" \
                     "bne 2b\n" \
                     "3:\n" \
                     "ldr r7, [r9, #12]\n" \
                     "ands r7, r7, #3\n" \
                     "beq 4f\n" \
                     "vctp.32 r7\n" last_inputs LAST_WEIGHTS products "4:\n" store \
                     "adds r11, #32\n" \
                     "ldr r1, [r9, #8]\n" \
                     "ldrd r3, r5, [r9, #20]\n" \
                     "add r1, r5\n" \
                     "str r1, [r9, #8]\n" \
                     "subs r3, #1\n" \
                     "strd r11, r3, [r9, #16]\n" \
                     "bne 1b\n" \
                     "vpop {d8-d13}\n" \
                     "pop {r4-r11, pc}\n")

__attribute__((naked)) void nk_four_products_of_two(nk_four_products *job) {
    (void)job;
    FOURS(LOAD_FIRST LOAD_SECOND, "vldrb.u8 q4, [r3], #16\nvldrb.u8 q5, [r5], #16\n",
          "vpstt\nvldrbt.u8 q4, [r3]\nvldrbt.u8 q5, [r5]\n", FIRST_PIXEL SECOND_PIXEL,
          STORE_FIRST STORE_SECOND);
}

__attribute__((naked)) void nk_four_products_of_one(nk_four_products *job) {
    (void)job;
    FOURS(LOAD_FIRST, "vldrb.u8 q4, [r3], #16\n", "vpst\nvldrbt.u8 q4, [r3]\n", FIRST_PIXEL,
          STORE_FIRST);
}

#endif
