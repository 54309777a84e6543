#include <string.h>

#include "model.h"

static size_t aligned(size_t size) {
    return (size + NEUTRON_ALIGNMENT - 1) / NEUTRON_ALIGNMENT * NEUTRON_ALIGNMENT;
}

_Static_assert(sizeof(struct NeutronModel) <= NEUTRON_CONTEXT_BYTES,
               "NEUTRON_CONTEXT_BYTES must hold a context");

/* The handle, its TCM, its state. Both are bounded by what validation allows, so nothing wraps. */
static size_t context_bytes(const NeutronHeaderRecord *header) {
    return aligned(sizeof(struct NeutronModel)) + aligned(header->tcm_bytes) +
           aligned(header->state_bytes);
}

NeutronError nd_handle_error(NeutronModelHandle handle) {
    if (handle == NULL) return NEUTRON_ERROR_NULL_HANDLE;
    return handle->live == ND_LIVE ? NEUTRON_NONE : NEUTRON_ERROR_STALE_HANDLE;
}

NeutronError nd_idle_error(NeutronModelHandle handle) {
    const NeutronError error = nd_handle_error(handle);
    if (error != NEUTRON_NONE) return error;
    const int state = atomic_load_explicit(&handle->state, memory_order_acquire);
    return state == ND_IDLE ? NEUTRON_NONE : NEUTRON_ERROR_BUSY;
}

size_t neutronGetModelContextSize(const void *microcode, size_t size) {
    NeutronHeaderRecord header;
    if (microcode == NULL || size < sizeof header) return 0;
    memcpy(&header, microcode, sizeof header);
    if (header.magic != NEUTRON_MAGIC || header.version != NEUTRON_VERSION_WORD) return 0;
    return header.state_bytes > NEUTRON_MAX_STATE_BYTES ? 0 : context_bytes(&header);
}

/* Turn memory into a prepared model. */
static NeutronModelHandle build(void *context, const nd_program *program,
                                const NeutronModelConfig *config, uint32_t owned) {
    struct NeutronModel *model = context;
    memset(model, 0, sizeof *model);
    model->program = *program;
    model->timeout_seconds = config->timeoutSeconds;
    model->tcm = (uint8_t *)context + aligned(sizeof *model);
    model->variables = model->tcm + aligned(program->header.tcm_bytes);
    nd_reset_state(model);
    model->detail.text = model->detail_text;
    model->detail.size = sizeof model->detail_text;
    model->owned = owned;
    atomic_init(&model->state, ND_IDLE);
    model->live = ND_LIVE;
    return model;
}

static NeutronError validated(nd_program *program, const NeutronModelConfig *config,
                              const NeutronModelSizes *sizes, NeutronModelHandle *handle) {
    nd_text nowhere = {NULL, 0, 0};
    if (handle == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    *handle = NULL;
    return nd_validate(program, config, sizes, &nowhere);
}

NeutronError neutronModelPrepareIn(void *context, size_t contextSize,
                                   const NeutronModelConfig *config, const NeutronModelSizes *sizes,
                                   NeutronModelHandle *handle) {
    nd_program program;
    if (context == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if ((uintptr_t)context % NEUTRON_ALIGNMENT) return NEUTRON_ERROR_ALIGNMENT;
    const NeutronError error = validated(&program, config, sizes, handle);
    if (error != NEUTRON_NONE) return error;
    if (contextSize < context_bytes(&program.header)) return NEUTRON_ERROR_CONTEXT_TOO_SMALL;
    *handle = build(context, &program, config, 0);
    return NEUTRON_NONE;
}

NeutronError neutronModelPrepareChecked(const NeutronModelConfig *config,
                                        const NeutronModelSizes *sizes,
                                        NeutronModelHandle *handle) {
    nd_program program;
    const NeutronError error = validated(&program, config, sizes, handle);
    if (error != NEUTRON_NONE) return error;
    void *context = neutronMemAlloc(NEUTRON_ALIGNMENT, context_bytes(&program.header));
    if (context == NULL) return NEUTRON_ERROR_NO_MEMORY;
    NeutronModelHandle model = build(context, &program, config, 1);
#if ND_THREADS
    const NeutronError refused = neutronSetThreads(model, nd_threads_wanted());
    if (refused != NEUTRON_NONE) {
        (void)neutronModelUnprepare(model);
        return refused;
    }
#endif
    *handle = model;
    return NEUTRON_NONE;
}

NeutronError neutronModelPrepare(const NeutronModelConfig *config, NeutronModelHandle *handle) {
    NeutronHeaderRecord header;
    if (config == NULL || config->microcode == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    memcpy(&header, config->microcode, sizeof header);
    const int profiling = (header.flags & NEUTRON_FLAG_PROFILING) != 0;
    const NeutronModelSizes sizes = {header.microcode_bytes, header.weights_bytes,
                                     header.kernels_bytes, header.layout[0],
                                     profiling ? header.layout[3] : header.layout[1]};
    return neutronModelPrepareChecked(config, &sizes, handle);
}

NeutronError neutronModelUnprepare(NeutronModelHandle handle) {
    const NeutronError error = nd_handle_error(handle);
    if (error != NEUTRON_NONE) return error;
    if (nd_idle_error(handle) != NEUTRON_NONE) (void)neutronWait(handle, NULL);
#if ND_THREADS
    nd_pool_free(handle->pool);
#endif
    handle->live = 0;
    if (handle->owned) neutronMemFree(handle);
    return NEUTRON_NONE;
}

const char *neutronModelErrorDetail(NeutronModelHandle handle) {
    return nd_idle_error(handle) == NEUTRON_NONE ? handle->detail_text : "";
}

NeutronError neutronModelGetInfo(NeutronModelHandle handle, NeutronModelInfo *info) {
    const NeutronError error = nd_handle_error(handle);
    if (error != NEUTRON_NONE) return error;
    if (info == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    const nd_program *p = &handle->program;
    memset(info, 0, sizeof *info);
    memcpy(info->target, p->identity.target, sizeof p->identity.target);
    info->formatVersion = p->identity.format_version;
    info->converterVersion = p->identity.converter_version;
    info->inputs = p->inputs;
    info->outputs = p->outputs;
    info->scratchBytes = p->scratch_bytes;
    info->prefetchBytes = p->prefetch_bytes;
    info->profileBytes = p->profile_bytes;
    info->debugBytes = p->debug_bytes;
    info->tcmBytes = p->header.tcm_bytes;
    info->stateBytes = p->header.state_bytes;
    info->calls = p->header.call_count;
    info->profiling = (p->header.flags & NEUTRON_FLAG_PROFILING) != 0;
    return NEUTRON_NONE;
}

NeutronError neutronModelGetTensor(NeutronModelHandle handle, uint32_t row,
                                   NeutronTensorInfo *info) {
    const NeutronError error = nd_handle_error(handle);
    if (error != NEUTRON_NONE) return error;
    if (info == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if (row >= handle->program.header.tensor_count) return NEUTRON_ERROR_ROW_RANGE;
    const NeutronTensorRecord t = nd_tensor(&handle->program, row);
    memset(info, 0, sizeof *info);
    info->isOutput = t.kind;
    info->index = t.index;
    info->dtype = t.dtype;
    info->rank = t.rank;
    info->bytes = t.bytes;
    info->zeroPoint = t.zero_point;
    memcpy(&info->scale, &t.scale, sizeof info->scale);
    memcpy(info->dims, t.dims, sizeof info->dims);
    return NEUTRON_NONE;
}

NeutronError neutronGetCycles(NeutronModelHandle handle, uint64_t *cycles) {
    const NeutronError error = nd_idle_error(handle);
    if (error != NEUTRON_NONE) return error;
    if (cycles == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    *cycles = handle->cycles;
    return NEUTRON_NONE;
}
