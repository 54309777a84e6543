/* The loops of 64-bit Arm: NEON, which every such processor has, and what the dot-product and
 * matrix extensions do better. */
#include "loops.h"

#if NK_HAS_NEON

#define NEON_LOOPS \
    .depthwise_conv2d = nk_depthwise_conv2d_neon, .conv2d16 = nk_conv2d16_neon, \
    .depthwise_conv2d16 = nk_depthwise_conv2d16_neon, \
    .fully_connected16 = nk_fully_connected16_neon, .max_pool2d = nk_max_pool2d_neon, \
    .avg_pool2d = nk_avg_pool2d_neon, .pool_sum = nk_pool_sum_neon, .add = nk_add_neon, \
    .requantize = nk_requantize_neon, .lut = nk_lut_neon, .max_pool2d16 = nk_max_pool2d16_neon, \
    .avg_pool2d16 = nk_avg_pool2d16_neon, .pool_sum16 = nk_pool_sum16_neon, \
    .add16 = nk_add16_neon, .requantize16 = nk_requantize16_neon

const nk_simd nk_simd_neon = {
    .conv2d = nk_conv2d_neon, .fully_connected = nk_fully_connected_neon, NEON_LOOPS};

const nk_simd nk_simd_dotprod = {
    .conv2d = nk_conv2d_dotprod, .fully_connected = nk_fully_connected_dotprod, NEON_LOOPS};

const nk_simd nk_simd_i8mm = {
    .conv2d = nk_conv2d_i8mm, .fully_connected = nk_fully_connected_i8mm, NEON_LOOPS};

#endif
