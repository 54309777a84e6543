/* Talking to the host through a debugger or QEMU: text out, and the end of the program. */
#ifndef SEMIHOST_H
#define SEMIHOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void put_text(const char *text);
void put_number(uint64_t value);
/* Two hexadecimal digits for each byte. */
void put_hex(const void *data, size_t size);
/* Ends the program with this status, which becomes QEMU's exit status. */
__attribute__((noreturn)) void leave(uint32_t status);

#ifdef __cplusplus
}
#endif

#endif
