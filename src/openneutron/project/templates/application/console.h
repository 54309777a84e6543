/* Text for whoever tries the model; each platform has its own way to print it. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void put_text(const char *text);
void put_number(uint64_t value);

#ifdef __cplusplus
}
#endif
#endif
