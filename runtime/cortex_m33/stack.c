#include "stack.h"

extern const uint32_t image_stack_bottom[], image_stack_top[];

uint32_t stack_size(void) {
    return (uint32_t)((uintptr_t)image_stack_top - (uintptr_t)image_stack_bottom);
}

uint32_t stack_used(void) {
    const volatile uint32_t *at = image_stack_bottom;
    while (at < image_stack_top && *at == STACK_PAINT) at++;
    return (uint32_t)((uintptr_t)image_stack_top - (uintptr_t)at);
}
