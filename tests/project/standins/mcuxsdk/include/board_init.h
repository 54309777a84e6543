/* Stands for the eIQ examples' header. */
#pragma once
static inline void BOARD_Init(void) {}
