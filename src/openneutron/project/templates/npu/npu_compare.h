/* Comparing one output of the NPU with the two values that are right for it. */
#ifndef NPU_COMPARE_H
#define NPU_COMPARE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Prints the first byte that neither expectation has; returns 1 when there is one. */
int npu_compare(uint32_t sample, uint32_t output, const uint8_t *found, const uint8_t *exact,
                const uint8_t *silicon, uint32_t bytes);
/* Prints how many samples passed and the verdict; returns 1 when one failed. */
int npu_verdict(uint32_t samples, uint32_t failed);

#ifdef __cplusplus
}
#endif
#endif
