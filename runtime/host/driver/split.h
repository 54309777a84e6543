/* Splits one call into parts that threads compute at once: rows, columns or output channels. */
#ifndef ND_SPLIT_H
#define ND_SPLIT_H

#include "model.h"
#include "thread_pool.h"

#if ND_THREADS

/* run_parallel.c: whether output row y of a kernel reads only row y of inputs of the output's
 * shape. */
bool nd_element_wise(uint32_t kernel);
/* Whether the rows of a call may be computed in any order, and at once. */
bool nd_rows_independent(const nk_call *call, const nd_kernel_info *info);
/* Compute rows [row0, row1) of a call, on the pool where its parts are independent and large enough
 * at this degree of sharing; returns the kernel's result. */
int32_t nd_run_parallel(nd_pool *pool, uint32_t degree, const nd_kernel_info *info, nk_call *call);
/* split_columns.c: whether the columns of a call with independent rows may be computed in `parts`
 * parts; the call of one part, whose changed parameters go to `params`. */
bool nd_columns_independent(const nk_call *call, uint32_t parts);
void nd_cut_columns(const nk_call *call, uint32_t first, uint32_t end,
                    int32_t params[NEUTRON_MAX_PARAMS], nk_call *part);
/* split_channels.c: the same for output channels. A part's requantization constants go to `table`.
 */
enum { ND_CUT_CHANNELS = 1024 }; /* of a part, whose table is on the stack */
bool nd_channels_independent(const nk_call *call, uint32_t parts);
void nd_cut_channels(const nk_call *call, uint32_t at, uint32_t parts,
                     int32_t table[3 * ND_CUT_CHANNELS], nk_call *part);

#endif
#endif
