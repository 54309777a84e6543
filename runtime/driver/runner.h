/* A run on its way: what calls are made with, whoever decides which. */
#ifndef ND_RUNNER_H
#define ND_RUNNER_H

#include "model.h"

typedef struct {
    struct NeutronModel *model;
    const nd_program *program;
    nd_buffers buffers;
    uint64_t deadline; /* on neutronClockMilliseconds; 0: none */
    nd_pool *pool;     /* NULL: one thread does all */
    uint32_t degree;   /* of sharing */
} nd_runner;

/* Between two instructions, of which the next is at `offset`: whether the run was suspended or its
 * time is over. */
NeutronError nd_may_go_on(nd_runner *r, uint32_t offset);
/* Compute the call's rows, from the top down; in bites when somebody waits for a time-out. `work`
 * is what nd_row_work says. */
NeutronError nd_make_rows(nd_runner *r, uint32_t offset, const nd_kernel_info *info, nk_call *call,
                          uint64_t work);

#endif
