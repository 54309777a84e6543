/* The vector loops of one instruction set, and which set runs. Included by nk_simd.h. */
#ifndef NK_HOST_SIMD_H
#define NK_HOST_SIMD_H

#include "nk_wide.h"

/* Loops of one instruction set; NULL where the definition is as good. */
typedef struct {
    int (*conv2d)(const nk_call *call, const nk_stage *stage);
    int (*depthwise_conv2d)(const nk_call *call, const nk_stage *stage);
    int (*fully_connected)(const nk_call *call, const nk_stage *stage);
    int (*conv2d16)(const nk_call *call, const nk_wide_stage *stage);
    int (*depthwise_conv2d16)(const nk_call *call, const nk_wide_stage *stage);
    int (*fully_connected16)(const nk_call *call, const nk_wide_stage *stage);
    int (*max_pool2d)(const nk_call *call, const nk_stage *stage);
    int (*avg_pool2d)(const nk_call *call, const nk_stage *stage);
    int (*pool_sum)(const nk_call *call);
    int (*add)(const nk_call *call);
    int (*requantize)(const nk_call *call);
    int (*lut)(const nk_call *call);
    /* Elements of 16 bits; of requantize, on either side. */
    int (*max_pool2d16)(const nk_call *call, const nk_stage *stage);
    int (*avg_pool2d16)(const nk_call *call, const nk_stage *stage);
    int (*pool_sum16)(const nk_call *call);
    int (*add16)(const nk_call *call);
    int (*requantize16)(const nk_call *call);
    int (*lut16)(const nk_call *call);
} nk_simd;

/* The instruction set in use, NULL for none: the processor's best, or what OPENNEUTRON_ISA names.
 * Chosen on first use. */
const nk_simd *nk_simd_active(void);

extern const nk_simd nk_simd_avx2, nk_simd_avx512;                /* NK_HAS_X86 */
extern const nk_simd nk_simd_neon, nk_simd_dotprod, nk_simd_i8mm; /* NK_HAS_NEON */

/* Choose by name: "portable"; "avx2", "avx512vnni" on x86-64; "neon", "dotprod", "i8mm" on 64-bit
 * Arm; or NULL for the environment's choice. False when this processor or this library has no such
 * set. For tests and benchmarks: no run may be in flight. */
NEUTRON_API bool neutronSetIsa(const char *name);
/* Name of the instruction set in use. */
NEUTRON_API const char *neutronGetIsa(void);

#endif
