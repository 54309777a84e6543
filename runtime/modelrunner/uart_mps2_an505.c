/* UART and timer of the MPS2+ board with image AN505, which QEMU calls mps2-an505, at their secure
 * addresses (Arm DAI 0505). */
#include "uart.h"

typedef struct {
    volatile uint32_t data, state, control, interrupt, divider;
} Uart;

typedef struct {
    volatile uint32_t control, value, reload;
} Timer;

#define UART ((Uart *)0x50200000u)
#define TIMER ((Timer *)0x50000000u)
/* Enables and clears pending interrupts 32 to 63; the UART's are 32 and 33. */
#define NVIC_ENABLE_1 (*(volatile uint32_t *)0xE000E104u)
#define NVIC_CLEAR_1 (*(volatile uint32_t *)0xE000E284u)
enum { UART_INTERRUPTS = 3 };

enum { TX_FULL = 1, RX_FULL = 2 };                              /* of the UART's state */
enum { TX_ENABLE = 1, RX_ENABLE = 2, RX_INTERRUPT_ENABLE = 8 }; /* of its control */
enum { RX_INTERRUPT = 2 }; /* of its pending interrupts, cleared by writing it */
enum { TIMER_ENABLE = 1 };
enum { CLOCK_HZ = 20000000, BAUD = 115200 }; /* the board's system clock, both runners' speed */

void uart_start(void) {
    UART->divider = CLOCK_HZ / BAUD;
    UART->control = TX_ENABLE | RX_ENABLE | RX_INTERRUPT_ENABLE;
    /* Interrupts stay masked: they wake the processor, and no handler runs. */
    __asm__ volatile("cpsid i");
    NVIC_ENABLE_1 = UART_INTERRUPTS;
    TIMER->reload = UINT32_MAX;
    TIMER->value = UINT32_MAX;
    TIMER->control = TIMER_ENABLE;
}

uint8_t uart_get(void) {
    while (!(UART->state & RX_FULL)) {}
    return (uint8_t)UART->data;
}

void uart_put(uint8_t byte) {
    while (UART->state & TX_FULL) {}
    UART->data = byte;
}

void uart_put_bytes(const void *data, uint32_t size) {
    const uint8_t *bytes = data;
    for (uint32_t at = 0; at < size; at++) uart_put(bytes[at]);
}

uint32_t clock_microseconds(void) { return (UINT32_MAX - TIMER->value) / (CLOCK_HZ / 1000000); }
