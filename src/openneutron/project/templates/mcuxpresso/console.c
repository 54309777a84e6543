#include "console.h"

#include "fsl_debug_console.h"

void put_text(const char *text) {
    for (; *text; text++) {
        if (*text == '\n') PUTCHAR('\r');
        PUTCHAR(*text);
    }
}

void put_number(uint64_t value) {
    char digits[21]; /* 2^64 - 1 has twenty */
    char *at = digits + sizeof digits;
    *--at = 0;
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    put_text(at);
}
