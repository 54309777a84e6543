/* Every SIMD loop, by kernel and instruction set. */
#ifndef NK_LOOPS_H
#define NK_LOOPS_H

#include "nk_simd.h"

#if NK_HAS_X86
int nk_conv2d_avx512(const nk_call *call, const nk_stage *stage);
int nk_fully_connected_avx512(const nk_call *call, const nk_stage *stage);
int nk_depthwise_conv2d_avx512(const nk_call *call, const nk_stage *stage);
int nk_conv2d16_avx512(const nk_call *call, const nk_wide_stage *stage);
int nk_fully_connected16_avx512(const nk_call *call, const nk_wide_stage *stage);
int nk_depthwise_conv2d16_avx512(const nk_call *call, const nk_wide_stage *stage);
int nk_add_avx512(const nk_call *call);

int nk_conv2d_avx2(const nk_call *call, const nk_stage *stage);
int nk_fully_connected_avx2(const nk_call *call, const nk_stage *stage);
int nk_depthwise_conv2d_avx2(const nk_call *call, const nk_stage *stage);
int nk_conv2d16_avx2(const nk_call *call, const nk_wide_stage *stage);
int nk_fully_connected16_avx2(const nk_call *call, const nk_wide_stage *stage);
int nk_depthwise_conv2d16_avx2(const nk_call *call, const nk_wide_stage *stage);
int nk_max_pool2d16_avx2(const nk_call *call, const nk_stage *stage);
int nk_avg_pool2d16_avx2(const nk_call *call, const nk_stage *stage);
int nk_pool_sum16_avx2(const nk_call *call);
int nk_add16_avx2(const nk_call *call);
int nk_requantize16_avx2(const nk_call *call);
int nk_lut16_avx2(const nk_call *call);
int nk_max_pool2d_avx2(const nk_call *call, const nk_stage *stage);
int nk_avg_pool2d_avx2(const nk_call *call, const nk_stage *stage);
int nk_pool_sum_avx2(const nk_call *call);
int nk_add_avx2(const nk_call *call);
/* One run of nk_add_avx2's; the clamp must be of the byte type. */
void nk_add_run_avx2(const nk_call *call, const uint8_t *a, uint32_t step_a, const uint8_t *b,
                     uint32_t step_b, uint8_t *out, uint32_t count);
int nk_requantize_avx2(const nk_call *call);
int nk_lut_avx2(const nk_call *call);
/* out[i] = table[in[i]]; in place is fine. */
void nk_look_up_avx2(const uint8_t *table, const uint8_t *in, uint8_t *out, uint32_t count);
#endif

#if NK_HAS_NEON
int nk_conv2d_i8mm(const nk_call *call, const nk_stage *stage);
int nk_fully_connected_i8mm(const nk_call *call, const nk_stage *stage);

int nk_conv2d_dotprod(const nk_call *call, const nk_stage *stage);
int nk_fully_connected_dotprod(const nk_call *call, const nk_stage *stage);

int nk_conv2d_neon(const nk_call *call, const nk_stage *stage);
int nk_fully_connected_neon(const nk_call *call, const nk_stage *stage);
int nk_depthwise_conv2d_neon(const nk_call *call, const nk_stage *stage);
int nk_conv2d16_neon(const nk_call *call, const nk_wide_stage *stage);
int nk_fully_connected16_neon(const nk_call *call, const nk_wide_stage *stage);
int nk_depthwise_conv2d16_neon(const nk_call *call, const nk_wide_stage *stage);
int nk_max_pool2d16_neon(const nk_call *call, const nk_stage *stage);
int nk_avg_pool2d16_neon(const nk_call *call, const nk_stage *stage);
int nk_pool_sum16_neon(const nk_call *call);
int nk_add16_neon(const nk_call *call);
int nk_requantize16_neon(const nk_call *call);
int nk_max_pool2d_neon(const nk_call *call, const nk_stage *stage);
int nk_avg_pool2d_neon(const nk_call *call, const nk_stage *stage);
int nk_pool_sum_neon(const nk_call *call);
int nk_add_neon(const nk_call *call);
int nk_requantize_neon(const nk_call *call);
int nk_lut_neon(const nk_call *call);
/* out[i] = table[in[i]]; in place is fine. */
void nk_look_up_neon(const uint8_t *table, const uint8_t *in, uint8_t *out, uint32_t count);
#endif

#endif
