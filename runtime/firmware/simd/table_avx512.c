/* The loops of AVX-512 with VNNI. */
#include "loops.h"

#if NK_HAS_SIMD
const nk_simd nk_simd_avx512 = {
    .name = "avx512vnni",
    .conv2d = nk_conv2d_avx512,
    .depthwise_conv2d = nk_depthwise_conv2d_avx512,
};
#endif
