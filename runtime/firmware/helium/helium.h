/* Inner loops for processors with Helium, Arm's M-profile vector extension (Cortex-M55,
 * Cortex-M85), chosen when the firmware is compiled: sixteen 8-bit products at a time, on the bytes
 * and packings that the loops of dsp/ read. */
#ifndef NK_HELIUM_H
#define NK_HELIUM_H

#if defined(__ARM_FEATURE_MVE)
#define NK_HAS_HELIUM 1
#include <arm_mve.h>
#else
#define NK_HAS_HELIUM 0
#endif

#endif
