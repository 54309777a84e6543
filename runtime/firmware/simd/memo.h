/* What the calls of one cascade share: a stripe of a few rows needs the same sums and rearranged
 * weights as the one before.
 *
 * Host only, one buffer per thread. It is keyed by a call's place in the microcode and holds for
 * one run of the driver, in which the weights region cannot change; calls from anywhere else, or
 * with weights that copies may replace, get nothing.
 */
#ifndef NK_MEMO_H
#define NK_MEMO_H

#include "nk_simd.h"

#if NK_HAS_SIMD

/* `bytes` of memory for part `part` of a call, 64-byte aligned; NULL when there is none. *fresh
 * says whether the caller has to fill it. Valid until the next call of this function on this thread
 * that asks for another part. */
void *nk_memo(const nk_call *call, const nk_operand *weights, const nk_operand *table,
              uint32_t part, size_t bytes, int *fresh);

#endif
#endif
