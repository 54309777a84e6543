/* The application's console on a host: what semihost.c and stack.c do on the board. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "semihost.h"
#include "stack.h"

void put_text(const char *text) { fputs(text, stdout); }
void put_number(uint64_t value) { printf("%" PRIu64, value); }

void put_hex(const void *data, size_t size) {
    for (size_t at = 0; at < size; at++) printf("%02x", ((const uint8_t *)data)[at]);
}

_Noreturn void leave(uint32_t status) { exit((int)status); }
uint32_t stack_size(void) { return 0; }
uint32_t stack_used(void) { return 0; }
