/* Start-up of a Cortex-M: vectors, stack limit and paint, initial data, then main(). A fault ends
 * the program with a sentence instead of a silent loop. */
#include <stdint.h>

#include "semihost.h"
#include "stack.h"

extern uint32_t image_stack_bottom[], image_stack_top[], image_data_start[], image_data_end[],
    image_bss_start[], image_bss_end[];
extern const uint32_t image_data_load[];

int main(void);
_Noreturn void image_reset(void);
_Noreturn void image_fault(uint32_t program_counter);

enum { FAULT_STATUS = 3 }; /* main() returns 0, 1 or 2 */

/* Configurable Fault Status Register, and its bit for a stack pointer below its limit (Armv8-M,
 * D1.2). */
#define CFSR (*(volatile uint32_t *)0xE000ED28u)
#define CFSR_STACK_OVERFLOW (UINT32_C(1) << 20)

/* Only Armv8-M main line has a register for the lowest address of the stack. */
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
#define SET_STACK_LIMIT(bottom) __asm__ volatile("msr msplim, %0" ::"r"(bottom))
#else
#define SET_STACK_LIMIT(bottom) ((void)(bottom))
#endif

/* Vectors belong to the coprocessors 10 and 11, which a processor starts without: Coprocessor
 * Access Control Register (Armv8.1-M, D1.2). */
#if defined(__ARM_FEATURE_MVE)
#define CPACR (*(volatile uint32_t *)0xE000ED88u)
#define ALLOW_VECTORS() \
    do { \
        CPACR |= UINT32_C(0xF) << 20; \
        __asm__ volatile("dsb\nisb" ::: "memory"); \
    } while (0)
#else
#define ALLOW_VECTORS() ((void)0)
#endif

/* The frame the processor pushed has the program counter in word 6. The handler starts on a fresh
 * stack: the old one may be what is broken. */
__attribute__((naked)) static void fault_entry(void) {
    SET_STACK_LIMIT(0);
    __asm__ volatile("mov r0, sp\n"
                     "ldr r1, =image_stack_top\n"
                     "mov sp, r1\n"
                     "ldr r0, [r0, #24]\n"
                     "b image_fault\n");
}

_Noreturn void image_fault(uint32_t program_counter) {
    const uint32_t status = CFSR;
    if (status & CFSR_STACK_OVERFLOW) {
        put_text("fault: the stack of ");
        put_number(stack_size());
        put_text(" bytes is too small\n");
    } else {
        put_text("fault: status ");
        put_number(status);
        put_text(" at address ");
        put_number(program_counter);
        put_text("\n");
    }
    leave(FAULT_STATUS);
}

_Noreturn void image_reset(void) {
    SET_STACK_LIMIT(image_stack_bottom);
    ALLOW_VECTORS();
    /* Volatile: a call of memset would be painted over itself. */
    const uint32_t *here = __builtin_frame_address(0);
    for (volatile uint32_t *at = image_stack_bottom; at < here - 16; at++) *at = STACK_PAINT;
    const uint32_t *from = image_data_load;
    for (volatile uint32_t *at = image_data_start; at < image_data_end; at++) *at = *from++;
    for (volatile uint32_t *at = image_bss_start; at < image_bss_end; at++) *at = 0;
    leave((uint32_t)main());
}

typedef void (*vector)(void);

/* Stack top, reset, then NMI and the five faults; the image enables no interrupts. */
__attribute__((section(".vectors"), used)) static const struct {
    const void *stack;
    vector entry[7];
} vectors = {
    image_stack_top,
    {image_reset, fault_entry, fault_entry, fault_entry, fault_entry, fault_entry, fault_entry}};
