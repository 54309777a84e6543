/* Stands for the board's header. */
#pragma once
static inline void BOARD_InitHardware(void) {}
