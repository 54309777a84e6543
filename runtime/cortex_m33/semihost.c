#include "semihost.h"

/* Operation numbers of Arm's "Semihosting for AArch32 and AArch64", and its reason "the application
 * ended". */
enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20 };
static const uint32_t application_exit = 0x20026;

static void semihost(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void put_text(const char *text) { semihost(SYS_WRITE0, text); }

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

void put_hex(const void *data, size_t size) {
    static const char digit[] = "0123456789abcdef";
    const uint8_t *bytes = data;
    char line[65]; /* 32 bytes at a time: each piece costs one stop of the debugger */
    for (size_t at = 0; at < size;) {
        size_t used = 0;
        for (; at < size && used < sizeof line - 1; at++) {
            line[used++] = digit[bytes[at] >> 4];
            line[used++] = digit[bytes[at] & 15];
        }
        line[used] = 0;
        put_text(line);
    }
}

_Noreturn void leave(uint32_t status) {
    const uint32_t block[2] = {application_exit, status};
    for (;;) semihost(SYS_EXIT_EXTENDED, block);
}
