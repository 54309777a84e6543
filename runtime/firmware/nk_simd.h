/* The seam between the kernels' definitions and the loops of host/simd/, dsp/ and helium/: a kernel
 * offers a checked call to the instruction set in use, which either runs all of it and answers 1,
 * or has no loop for such a call and answers 0.
 *
 * A loop gives the bytes the definition gives. It may read and write in another order, so it relies
 * on what the compiler keeps: an output shares no byte with an input of the same call, unless they
 * are the same elements of an element-wise kernel. Microcode that breaks this gets other numbers;
 * it never makes a loop leave the declared operands.
 */
#ifndef NK_SIMD_H
#define NK_SIMD_H

#if defined(__x86_64__) && (defined(__unix__) || defined(__APPLE__))
#define NK_HAS_X86 1
#else
#define NK_HAS_X86 0
#endif
#if defined(__aarch64__) && defined(__ARM_NEON) && (defined(__linux__) || defined(__APPLE__))
#define NK_HAS_NEON 1
#else
#define NK_HAS_NEON 0
#endif
#define NK_HAS_SIMD (NK_HAS_X86 || NK_HAS_NEON)

#include "nk_wide.h"
#include "helium/helium.h"

#if NK_HAS_SIMD

#include "simd.h"

/* 1 when a SIMD loop has done the call. */
#define NK_SIMD(kernel, ...) \
    (nk_simd_active() && nk_simd_active()->kernel && nk_simd_active()->kernel(__VA_ARGS__))

#elif NK_HAS_HELIUM

#include "helium/loops.h"

#define NK_SIMD(kernel, ...) (nk_helium_##kernel(__VA_ARGS__) || nk_dsp_##kernel(__VA_ARGS__))

#elif NK_HAS_DSP

#include "dsp/loops.h"

#define NK_SIMD(kernel, ...) nk_dsp_##kernel(__VA_ARGS__)

#else
#define NK_SIMD(kernel, ...) 0
#endif

#endif
