/* A compiled model that is part of the program: initialise it in memory of the caller, run it.
 *
 * `openneutron extract-payload model.pte -o model.c` writes a description of the model and
 * functions under its own name, model_init() and model_run(), which call these; an application
 * needs nothing else of the driver. There is no heap and no floating point, and handles do not
 * share anything: an arena is a handle, and every arena may run at the same time as the others.
 */
#ifndef NEUTRON_LINKED_H
#define NEUTRON_LINKED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where the blocks of a payload are, and the memory that the model takes. */
typedef struct {
    const uint32_t *payload; /* at a multiple of 16 */
    uint32_t microcode_offset, microcode_bytes;
    uint32_t weights_offset, weights_bytes;
    uint32_t kernels_offset, kernels_bytes;
    uint32_t scratch_bytes, prefetch_bytes, profile_bytes;
    uint32_t inputs, outputs;
    uint32_t arena_bytes; /* the least that neutronLinkedInit() takes */
} NeutronLinkedModel;

/* What an arena holds beside context, scratch, prefetch and profile: pointers to inputs, outputs
 * and three buffers, and some words. */
#define NEUTRON_LINKED_BYTES(inputs, outputs) (((inputs) + (outputs) + 9) * sizeof(void *))

/* Prepare the model in an arena at a multiple of 16, which is the handle from then on and stays
 * where it is. The payload is checked except for its checksum, as it is as safe as the program
 * around it. Returns 0, or an error word for neutronErrorString(). In an arena of more bytes coded
 * constants are decoded into what is left over: those of a whole call, or all of them once. */
int32_t neutronLinkedInit(const NeutronLinkedModel *model, void *arena, uint32_t bytes);

/* Run it on inputs and into outputs of the caller, each at a multiple of 16, in the order of the
 * model's. Returns 0 or an error word. */
int32_t neutronLinkedRun(void *arena, const void *const *inputs, void *const *outputs);

/* Set the state that a recurrent model keeps from run to run back to its first contents. */
int32_t neutronLinkedReset(void *arena);

#ifdef __cplusplus
}
#endif
#endif
