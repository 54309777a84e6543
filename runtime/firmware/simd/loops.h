/* Every SIMD loop, by kernel and instruction set. */
#ifndef NK_LOOPS_H
#define NK_LOOPS_H

#include "nk_simd.h"

#if NK_HAS_SIMD
int nk_conv2d_avx512(const nk_call *call, const nk_stage *stage);
int nk_depthwise_conv2d_avx512(const nk_call *call, const nk_stage *stage);
#endif

#endif
