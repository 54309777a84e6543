/* THE cycle model: pure functions of target constants and a call's geometry. The compiler calls
 * them while searching, the simulator for each executed call; no prediction is stored in a file.
 * All arithmetic is integer, in 1/1024 cycle.
 */
#ifndef NEUTRON_MACHINE_H
#define NEUTRON_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "nd_features.h"

/* An image without cycle model does not hold the targets' constants. */
#if ND_CYCLES
#define NM_CONSTANTS_MEMBER nm_constants cost;
#else
#define NM_CONSTANTS_MEMBER
#endif

#include "generated/structs.h"
#include "neutron.h"

/* What the formulas need to know of a call; rows are the clipped output rows. */
typedef struct {
    uint32_t formula; /* NEUTRON_COST_* */
    uint32_t kernel_h, kernel_w, groups;
    uint32_t input_channels;
    uint32_t input_item; /* bytes per element of the input; 16-bit activations take longer */
    uint32_t batch, rows, width, channels; /* of the output */
    uint64_t weight_bytes;
    uint64_t stored_bytes; /* that they are stored in, coded; 0: they are plain */
    uint64_t moved_bytes;  /* read and written, for element-wise and copy kernels */
} nm_work;

NEUTRON_API const nm_target *nm_target_find(const char *name);
NEUTRON_API nm_cost nm_call_cost(const nm_target *target, const nm_work *work);
/* A copy of `bytes`; `stored` are those that it reads where these are coded, else 0. */
NEUTRON_API nm_cost nm_dma_cost(const nm_target *target, uint64_t bytes, uint64_t stored);
/* Whole cycles of a cost: rounded up once per call, so that prediction and simulation add the same
 * integers. */
NEUTRON_API uint64_t nm_cycles(const nm_cost *cost);
/* Cost of an encoded CALL instruction (its first word on) for output rows [row0, row1), its weights
 * stored in so many bytes or, with 0, plain; 0 or an error word. */
NEUTRON_API NeutronError nm_encoded_call_cost(const nm_target *target, const uint32_t *words,
                                              size_t count, int32_t row0, int32_t row1,
                                              uint64_t stored, nm_cost *cost);

#endif
