/* The assembly has r0 sums, r1 multipliers, r2 the column, r3 what is added, r4 to r8 one channel,
 * r9 and r10 outputs of two pixels, r11 and r12 their places, lr the count. A channel takes 21
 * instructions for both pixels. */
#include "stage_dsp.h"

#include <stddef.h>

#if NK_HAS_DSP

bool nk_stage_is_short(const nk_stage *stage, uint32_t channels, uint64_t most) {
    if (stage->rounding != NEUTRON_ROUNDING_DOUBLE || most >= NK_SHORT_LIMIT) return false;
    if (stage->lut || stage->low < INT8_MIN || stage->high > INT8_MAX) return false;
    const int32_t room = NK_SHORT_LIMIT - (int32_t)most;
    const uint8_t *at = stage->table;
    for (; channels; --channels, at += 4) {
        const int32_t bias = nk_load32(at), shift = nk_load32(at + 2 * stage->column);
        if (bias <= -room || bias >= room || shift < -NK_SHORT_SHIFT || shift > -1) return false;
    }
    return true;
}

_Static_assert(offsetof(nk_finish_fours_job, fours) == 24 &&
                   offsetof(nk_finish_fours_job, low) == 28,
               "what the assembly reads");

#define RESCALE(sum) \
    "lsl " sum ", #1\n" \
    "smmulr " sum ", " sum ", r5\n" \
    "add " sum ", " sum ", " sum ", asr #31\n" \
    "add " sum ", r8\n" \
    "asr " sum ", r4\n" \
    "ssat " sum ", #8, " sum "\n"

#define CHANNEL(place) \
    "ldr r4, [r1, r2]\n" \
    "ldr r5, [r1], #4\n" \
    "ldrd r6, r7, [r0], #8\n" \
    "mvn r8, r4\n" \
    "lsl r8, r3, r8\n" \
    "rsb r4, r4, #0\n" RESCALE("r6") RESCALE("r7") "bfi r9, r6, #" place ", #8\n" \
                                                   "bfi r10, r7, #" place ", #8\n"

#define CLAMP(word) \
    "ssub8 r6, " word ", r4\n" \
    "sel " word ", " word ", r4\n" \
    "ssub8 r6, r5, " word "\n" \
    "sel " word ", " word ", r5\n"

__attribute__((naked)) void nk_finish_fours(const nk_finish_fours_job *job) {
    (void)job;
    __asm__ volatile("push {r0, r4-r11, lr}\n"
                     "ldr lr, [r0, #24]\n"
                     "ldrd r11, r12, [r0, #16]\n"
                     "ldmia r0, {r0-r3}\n"
                     "1:\n" CHANNEL("0") CHANNEL("8") CHANNEL("16")
                         CHANNEL("24") "ldr r6, [sp]\n"
                                       "ldrd r4, r5, [r6, #28]\n" CLAMP("r9")
                                           CLAMP("r10") "str r10, [r12], #4\n"
                                                        "str r9, [r11], #4\n"
                                                        "subs lr, #1\n"
                                                        "bne 1b\n"
                                                        "pop {r0, r4-r11, pc}\n");
}

#endif
