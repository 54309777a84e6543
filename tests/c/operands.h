/* Operands for calls of kernels that no microcode is behind. */
#ifndef TEST_OPERANDS_H
#define TEST_OPERANDS_H

#include "model.h"

/* Byte images of `pixel` bytes a pixel, of which `room` bytes may be touched. */
static inline nk_operand images(uint8_t *at, uint32_t batch, uint32_t height, uint32_t width,
                                uint32_t channels, uint32_t pixel, uint32_t room) {
    const nk_operand o = {.data = at,
                          .plane = height * width * pixel,
                          .pitch = width * pixel,
                          .pixel = pixel,
                          .ring = height,
                          .batch = batch,
                          .height = height,
                          .width = width,
                          .channels = channels,
                          .dtype = NEUTRON_DTYPE_INT8,
                          .present = 1,
                          .available = room};
    return o;
}

/* Constants. */
static inline nk_operand flat(uint8_t *at, uint32_t bytes) {
    const nk_operand o = {.data = at,
                          .ring = 1,
                          .batch = 1,
                          .height = 1,
                          .width = 1,
                          .channels = bytes,
                          .present = 1,
                          .dtype = NEUTRON_DTYPE_UINT8,
                          .available = bytes};
    return o;
}

#endif
