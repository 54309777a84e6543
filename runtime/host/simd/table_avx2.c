/* The loops of AVX2. */
#include "loops.h"

#if NK_HAS_X86
const nk_simd nk_simd_avx2 = {
    .conv2d = nk_conv2d_avx2,
    .depthwise_conv2d = nk_depthwise_conv2d_avx2,
    .fully_connected = nk_fully_connected_avx2,
    .conv2d16 = nk_conv2d16_avx2,
    .depthwise_conv2d16 = nk_depthwise_conv2d16_avx2,
    .fully_connected16 = nk_fully_connected16_avx2,
    .max_pool2d = nk_max_pool2d_avx2,
    .avg_pool2d = nk_avg_pool2d_avx2,
    .pool_sum = nk_pool_sum_avx2,
    .add = nk_add_avx2,
    .requantize = nk_requantize_avx2,
    .lut = nk_lut_avx2,
    .max_pool2d16 = nk_max_pool2d16_avx2,
    .avg_pool2d16 = nk_avg_pool2d16_avx2,
    .pool_sum16 = nk_pool_sum16_avx2,
    .add16 = nk_add16_avx2,
    .requantize16 = nk_requantize16_avx2,
    .lut16 = nk_lut16_avx2,
};
#endif
