/* The serial port of the runner: bytes in and out, and a clock to time runs with. */
#ifndef UART_H
#define UART_H

#include <stdint.h>

void uart_start(void);
/* Waits for the next byte. */
uint8_t uart_get(void);
void uart_put(uint8_t byte);
void uart_put_bytes(const void *data, uint32_t size);
/* Microseconds since uart_start(); starts again from 0 after 214 seconds. */
uint32_t clock_microseconds(void);

#endif
