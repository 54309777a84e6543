/* Loops for whole calls on processors with Arm's DSP extension: what NK_SIMD offers calls to there.
 * They rely on what those of host/simd/ rely on (nk_simd.h). */
#ifndef NK_DSP_LOOPS_H
#define NK_DSP_LOOPS_H

#include "nk_window.h"

#if NK_HAS_DSP
/* 1 when the loop has done the call, 0 when it has none for it. */
int nk_dsp_conv2d(const nk_call *call, const nk_stage *stage);
int nk_dsp_fully_connected(const nk_call *call, const nk_stage *stage);
int nk_dsp_depthwise_conv2d(const nk_call *call, const nk_stage *stage);
int nk_dsp_max_pool2d(const nk_call *call, const nk_stage *stage);
int nk_dsp_avg_pool2d(const nk_call *call, const nk_stage *stage);
int nk_dsp_add(const nk_call *call);

/* Kernels without a loop. */
#define nk_dsp_conv2d16(call, stage) ((void)(stage), 0)
#define nk_dsp_depthwise_conv2d16(call, stage) ((void)(stage), 0)
#define nk_dsp_fully_connected16(call, stage) ((void)(stage), 0)
#define nk_dsp_max_pool2d16(call, stage) ((void)(stage), 0)
#define nk_dsp_avg_pool2d16(call, stage) ((void)(stage), 0)
#define nk_dsp_pool_sum(call) 0
#define nk_dsp_pool_sum16(call) 0
#define nk_dsp_add16(call) 0
#define nk_dsp_requantize(call) 0
#define nk_dsp_requantize16(call) 0
#define nk_dsp_lut(call) 0
#define nk_dsp_lut16(call) 0
#endif

#endif
