/* Loops for whole calls on processors with Helium, which have the DSP extension too: calls without
 * a loop here get one of dsp/. They rely on what those rely on (nk_simd.h). */
#ifndef NK_HELIUM_LOOPS_H
#define NK_HELIUM_LOOPS_H

#include "dsp/loops.h"
#include "helium.h"

#if NK_HAS_HELIUM
/* 1 when the loop has done the call, 0 when it has none for it. */
int nk_helium_conv2d(const nk_call *call, const nk_stage *stage);
int nk_helium_fully_connected(const nk_call *call, const nk_stage *stage);
int nk_helium_depthwise_conv2d(const nk_call *call, const nk_stage *stage);
int nk_helium_max_pool2d(const nk_call *call, const nk_stage *stage);
int nk_helium_avg_pool2d(const nk_call *call, const nk_stage *stage);
int nk_helium_add(const nk_call *call);

/* Kernels without a loop. */
#define nk_helium_conv2d16(call, stage) 0
#define nk_helium_depthwise_conv2d16(call, stage) 0
#define nk_helium_fully_connected16(call, stage) 0
#define nk_helium_max_pool2d16(call, stage) 0
#define nk_helium_avg_pool2d16(call, stage) 0
#define nk_helium_pool_sum(call) 0
#define nk_helium_pool_sum16(call) 0
#define nk_helium_add16(call) 0
#define nk_helium_requantize(call) 0
#define nk_helium_requantize16(call) 0
#define nk_helium_lut(call) 0
#define nk_helium_lut16(call) 0
#endif

#endif
