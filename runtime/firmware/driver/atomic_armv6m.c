/* Compare and exchange on Armv6-M (Cortex-M0, M0+, M1), which has no exclusive loads: the one
 * atomic operation that compilers leave to a library there. */
#include <stdbool.h>
#include <stdint.h>

#if defined(__ARM_ARCH_6M__)

bool nd_compare_exchange(volatile uint32_t *at, uint32_t *expected, uint32_t desired, int success,
                         int failure) __asm__("__atomic_compare_exchange_4");

/* Nothing else runs while interrupts are off. */
bool nd_compare_exchange(volatile uint32_t *at, uint32_t *expected, uint32_t desired, int success,
                         int failure) {
    uint32_t masked;
    (void)success, (void)failure;
    __asm__ volatile("mrs %0, primask\ncpsid i" : "=r"(masked)::"memory");
    const uint32_t found = *at;
    if (found == *expected) *at = desired;
    __asm__ volatile("msr primask, %0" ::"r"(masked) : "memory");
    const bool same = found == *expected;
    *expected = found;
    return same;
}

#endif
