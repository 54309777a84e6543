/* Sums and rearranged weights of a call, which are the same for its next stripe and in the next
 * run.
 *
 * Host only, one buffer per thread. It is keyed by a call's place in the microcode and holds while
 * this thread runs the same prepared model, whose weights region cannot change; calls from anywhere
 * else, or with weights that copies may replace, get nothing.
 */
#ifndef NK_MEMO_H
#define NK_MEMO_H

#include "nk_simd.h"

#if NK_HAS_SIMD

/* `bytes` of memory for part `part` of a call, 64-byte aligned; NULL when there is none. *fresh
 * says whether the caller has to fill it. A call for some of its rows (`stripe`) comes again soon,
 * and one that fills it in far less time than it then saves may ask as if it did: it gets memory
 * that others have. One for all of its rows gets what is free. Valid until the next
 * call of this function on this thread that asks for another part. */
void *nk_memo(const nk_call *call, const nk_operand *weights, const nk_operand *table,
              uint32_t part, size_t bytes, int stripe, int *fresh);

#endif
#endif
