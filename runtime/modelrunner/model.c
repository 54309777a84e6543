#include "model.h"

#include <string.h>

#include "generated/microcode.h"
#include "uart.h"

#define ALIGNED(bytes) (((bytes) + 15u) / 16u * 16u)
enum { MOST_INPUTS = 16, MOST_OUTPUTS = 16 }; /* as NXP's runners */

static _Alignas(16) uint8_t copy[MODEL_LIMIT];
static _Alignas(16) uint8_t arena[ARENA_LIMIT];

/* All zeros when no model is loaded. */
static struct {
    NeutronModelHandle handle;
    uint32_t bytes, used;
    NeutronModelInfo info;
    NeutronTensorInfo inputs[MOST_INPUTS], outputs[MOST_OUTPUTS];
    const void *input_data[MOST_INPUTS];
    void *output_data[MOST_OUTPUTS + 3];
    void *prefetch;
} model;

bool model_loaded(void) { return model.handle != NULL; }
uint32_t model_bytes(void) { return model.bytes; }
uint32_t model_arena(void) { return model.used; }
uint32_t model_inputs(void) { return model.info.inputs; }
uint32_t model_outputs(void) { return model.info.outputs; }
const NeutronTensorInfo *model_input(uint32_t at) { return &model.inputs[at]; }
const NeutronTensorInfo *model_output(uint32_t at) { return &model.outputs[at]; }
uint8_t *model_input_data(uint32_t at) { return (uint8_t *)model.input_data[at]; }
const uint8_t *model_output_data(uint32_t at) { return model.output_data[at]; }

void model_drop(void) {
    if (model.handle) neutronModelUnprepare(model.handle);
    memset(&model, 0, sizeof model);
}

/* Memory from the arena, NULL when there is not enough. */
static void *take(uint32_t bytes) {
    if (bytes > ARENA_LIMIT - model.used) return NULL;
    void *found = arena + model.used;
    model.used += ALIGNED(bytes);
    return found;
}

/* Finds the three blocks of a payload: header, microcode, weights and kernels, each padded to 16
 * bytes. Formats and maps in the header are not looked at: the host wrote the order of arguments.
 */
static bool find_blocks(uint32_t size, NeutronModelConfig *config, NeutronModelSizes *sizes,
                        NeutronHeaderRecord *header) {
    if (size < 4) return false;
    const uint32_t microcode = ALIGNED(4u + 2u * ((uint32_t)copy[0] + copy[1]));
    if (microcode > size || sizeof *header > size - microcode) return false;
    memcpy(header, copy + microcode, sizeof *header);
    const uint64_t weights = microcode + ALIGNED((uint64_t)header->microcode_bytes);
    const uint64_t kernels = weights + ALIGNED((uint64_t)header->weights_bytes);
    if (header->magic != NEUTRON_MAGIC || kernels + header->kernels_bytes > size) return false;
    *config = (NeutronModelConfig){copy + microcode, copy + weights, copy + kernels, 0};
    sizes->microcode = header->microcode_bytes;
    sizes->weights = header->weights_bytes;
    sizes->kernels = header->kernels_bytes;
    return true;
}

/* The context takes what it needs to decode constants once, or, if the arena is too small for that,
 * the least. */
static NeutronError prepare(const NeutronModelConfig *config, const NeutronModelSizes *sizes) {
    size_t bytes = neutronGetModelContextSize(config->microcode, sizes->microcode);
    NeutronError error = neutronModelCheck(config, sizes, NULL, 0);
    if (error != NEUTRON_NONE) return error;
    if (bytes > ARENA_LIMIT / 2) error = neutronGetLeastContextSize(config, sizes, &bytes);
    if (error != NEUTRON_NONE) return error;
    void *context = bytes <= ARENA_LIMIT ? take((uint32_t)bytes) : NULL;
    if (!context) return NEUTRON_ERROR(NEUTRON_COMPONENT_DRIVER, NEUTRON_DRIVER_NO_MEMORY, 0);
    return neutronModelPrepareIn(context, bytes, config, sizes, &model.handle);
}

/* Gives every input, output and buffer its memory. */
static bool place(void) {
    NeutronTensorInfo row;
    for (uint32_t at = 0; at < model.info.inputs + model.info.outputs; at++) {
        if (neutronModelGetTensor(model.handle, at, &row) != NEUTRON_NONE) return false;
        (row.isOutput ? model.outputs : model.inputs)[row.index] = row;
        void *data = take(row.bytes);
        if (!data) return false;
        memset(data, 0, row.bytes);
        if (row.isOutput) model.output_data[row.index] = data;
        else model.input_data[row.index] = data;
    }
    const uint32_t outputs = model.info.outputs;
    model.output_data[outputs] = take(model.info.scratchBytes);
    model.output_data[outputs + 1] = take(model.info.profileBytes);
    model.output_data[outputs + 2] = take(model.info.debugBytes);
    model.prefetch = take(model.info.prefetchBytes);
    return model.output_data[outputs] && model.output_data[outputs + 1] &&
           model.output_data[outputs + 2] && model.prefetch;
}

static ModelStatus refuse(ModelStatus status, NeutronError error, const char **reason) {
    model_drop();
    if (error != NEUTRON_NONE && neutronErrorName(error)) *reason = neutronErrorName(error);
    return status;
}

ModelStatus model_load(const uint8_t *payload, uint32_t size, const char **reason) {
    NeutronModelConfig config;
    NeutronModelSizes sizes = {0};
    NeutronHeaderRecord header;
    *reason = "";
    model_drop();
    if (size > MODEL_LIMIT) return MODEL_TOO_LARGE;
    memcpy(copy, payload, size);
    if (!find_blocks(size, &config, &sizes, &header)) return MODEL_UNKNOWN;
    const bool profiling = header.flags & NEUTRON_FLAG_PROFILING;
    sizes.scratch = header.layout[0];
    sizes.prefetch = header.layout[profiling ? 3 : 1];
    const NeutronError error = prepare(&config, &sizes);
    if (error != NEUTRON_NONE) {
        const bool memory = NEUTRON_CATEGORY(error) == NEUTRON_DRIVER_NO_MEMORY;
        return refuse(memory ? MODEL_NO_MEMORY : MODEL_REFUSED, error, reason);
    }
    neutronModelGetInfo(model.handle, &model.info);
    if (model.info.inputs > MOST_INPUTS || model.info.outputs > MOST_OUTPUTS)
        return refuse(MODEL_REFUSED, NEUTRON_NONE, reason);
    if (!place()) return refuse(MODEL_NO_MEMORY, NEUTRON_NONE, reason);
    model.bytes = size;
    return MODEL_READY;
}

bool model_run(uint32_t *microseconds) {
    const NeutronDataConfig data = {model.input_data, model.output_data, NULL, model.prefetch};
    const uint32_t start = clock_microseconds();
    const NeutronError error = neutronRunBlocking(model.handle, &data);
    *microseconds = clock_microseconds() - start;
    return error == NEUTRON_NONE;
}
