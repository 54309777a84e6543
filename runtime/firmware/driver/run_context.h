/* The state of one run that calls need, whether the microcode or a script decides their order. */
#ifndef ND_RUN_CONTEXT_H
#define ND_RUN_CONTEXT_H

#include "model.h"

typedef struct {
    struct NeutronModel *model;
    const nd_program *program;
    nd_buffers buffers;
    uint64_t deadline; /* on neutronClockMilliseconds; 0: none */
    nd_pool *pool;     /* NULL: one thread does all */
    uint32_t degree;   /* of sharing */
} nd_run_context;

/* Check between two instructions, of which the next is at `offset`: SUSPENDED, or TIMEOUT after the
 * deadline. */
NeutronError nd_check_deadline(nd_run_context *r, uint32_t offset);
/* Compute the rows of a call, from the top down, in several steps when the run has a deadline.
 * `work` is the result of nd_row_work. */
NeutronError nd_compute_rows(nd_run_context *r, uint32_t offset, const nd_kernel_info *info,
                             nk_call *call, uint64_t work);

#endif
