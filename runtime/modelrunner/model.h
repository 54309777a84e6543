/* The one model that a runner holds: a delegate's payload of open microcode, as `openneutron
 * extract-payload` writes it, in memory that is set aside when the image is linked. */
#ifndef RUNNER_MODEL_H
#define RUNNER_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "neutron.h"

/* Buffers of NXP's executorch_modelrunner. */
#define MODEL_LIMIT 393216u
#define INPUT_LIMIT 262144u
/* Driver's context, inputs, outputs, scratch and prefetch memory. */
#define ARENA_LIMIT 917504u

typedef enum {
    MODEL_READY,
    MODEL_TOO_LARGE, /* more than MODEL_LIMIT */
    MODEL_UNKNOWN,   /* no payload */
    MODEL_REFUSED,   /* by the driver */
    MODEL_NO_MEMORY, /* more than ARENA_LIMIT */
} ModelStatus;

/* Drops the loaded model and loads this one. `reason` gets the driver's name of the error, or "".
 */
ModelStatus model_load(const uint8_t *payload, uint32_t size, const char **reason);
void model_drop(void);
bool model_loaded(void);
uint32_t model_bytes(void);
/* Bytes of the arena that the model takes. */
uint32_t model_arena(void);
uint32_t model_inputs(void);
uint32_t model_outputs(void);
/* Input or output `at`, and where its bytes lie. */
const NeutronTensorInfo *model_input(uint32_t at);
const NeutronTensorInfo *model_output(uint32_t at);
uint8_t *model_input_data(uint32_t at);
const uint8_t *model_output_data(uint32_t at);
/* Runs on the inputs as they are; `microseconds` is the time of the driver's call. */
bool model_run(uint32_t *microseconds);

#endif
