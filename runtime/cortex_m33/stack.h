/* How much stack a program used: start-up paints it, what lost its paint was used. */
#ifndef STACK_H
#define STACK_H

#include <stdint.h>

#define STACK_PAINT 0x5AC35AC3u /* neither an address nor a likely value */

uint32_t stack_size(void);
uint32_t stack_used(void);

#endif
