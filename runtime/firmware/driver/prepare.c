#include <string.h>

#include "model.h"

#if ND_THREADS
#include "script.h"
#include "thread_pool.h"
#endif

static size_t aligned(size_t size) {
    return (size + NEUTRON_ALIGNMENT - 1) / NEUTRON_ALIGNMENT * NEUTRON_ALIGNMENT;
}

_Static_assert(sizeof(struct NeutronModel) <= NEUTRON_CONTEXT_BYTES,
               "NEUTRON_CONTEXT_BYTES must hold a context");

/* The handle, its TCM, its state, its decoded constants. All are bounded by what validation allows,
 * so nothing wraps. */
static size_t context_bytes(const NeutronHeaderRecord *header) {
    return aligned(sizeof(struct NeutronModel)) + aligned(header->tcm_bytes) +
           aligned(header->state_bytes) + aligned(header->plain_bytes);
}

/* Without its decoded constants. */
static size_t bare_bytes(const NeutronHeaderRecord *header) {
    return context_bytes(header) - aligned(header->plain_bytes);
}

size_t neutronGetModelContextSize(const void *microcode, size_t size) {
    NeutronHeaderRecord header;
    if (microcode == NULL || size < sizeof header) return 0;
    memcpy(&header, microcode, sizeof header);
    if (header.magic != NEUTRON_MAGIC || header.version != NEUTRON_VERSION_WORD) return 0;
    if (header.state_bytes > NEUTRON_MAX_STATE_BYTES ||
        header.plain_bytes > NEUTRON_MAX_PLAIN_BYTES || header.window_bytes > header.plain_bytes)
        return 0;
    return context_bytes(&header);
}

/* Turn memory into a prepared model, with a window of so many bytes where its constants do not
 * become plain now. */
static NeutronError build(void *context, const nd_program *program, uint32_t timeout,
                          uint32_t owned, uint32_t window, NeutronModelHandle *handle) {
    struct NeutronModel *model = context;
    memset(model, 0, sizeof *model);
    model->program = *program;
    model->timeout_seconds = timeout;
    model->tcm = (uint8_t *)context + aligned(sizeof *model);
    model->variables = model->tcm + aligned(program->header.tcm_bytes);
    if (window) {
        model->window = model->variables + aligned(program->header.state_bytes);
        model->window_bytes = window;
    } else if (ND_DECODERS && program->header.section_count) {
        nd_text no_detail = {NULL, 0, 0};
        uint8_t *constants = model->variables + aligned(program->header.state_bytes);
        const NeutronError error = nd_decode_sections(program, constants, &no_detail);
        if (error != NEUTRON_NONE) return error;
        model->program.weights = constants;
    }
    nd_reset_state(model);
    model->detail.text = model->detail_text;
    model->detail.size = sizeof model->detail_text;
    model->owned = (uint8_t)owned;
    atomic_init(&model->state, ND_IDLE);
    atomic_init(&model->finished, false);
    *handle = nd_handle_make(model);
    return *handle != NULL ? NEUTRON_NONE : NEUTRON_ERROR_NO_MEMORY;
}

static NeutronError validated(nd_program *program, const NeutronModelConfig *config,
                              const NeutronModelSizes *sizes, bool linked, uint32_t *timeout,
                              NeutronModelHandle *handle) {
    nd_text no_detail = {NULL, 0, 0};
    if (handle == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    *handle = NULL;
    NeutronError error = nd_validate(program, config, sizes, linked, &no_detail);
    if (error == NEUTRON_NONE) error = nd_check_memory(program, &no_detail);
    return error == NEUTRON_NONE ? nd_timeout(config, timeout) : error;
}

/* Streams are trusted while a model runs: all are seen here. */
static NeutronError check_window(const nd_program *program, uint32_t window) {
    nd_text no_detail = {NULL, 0, 0};
    if (!ND_DECODERS || !program->header.section_count || nd_least_window(program) > window)
        return NEUTRON_ERROR_CONTEXT_TOO_SMALL;
    return nd_decode_sections(program, NULL, &no_detail);
}

NeutronError neutronGetLeastContextSize(const NeutronModelConfig *config,
                                        const NeutronModelSizes *sizes, size_t *bytes) {
    nd_program program;
    nd_text no_detail = {NULL, 0, 0};
    if (bytes == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    *bytes = 0;
    const NeutronError error = nd_validate(&program, config, sizes, false, &no_detail);
    if (error != NEUTRON_NONE) return error;
    const uint32_t least =
        ND_DECODERS && program.header.section_count ? nd_least_window(&program) : 0;
    const bool smaller = least < program.header.plain_bytes;
    /* A context without any window decodes at once. */
    *bytes = smaller ? bare_bytes(&program.header) + aligned(least ? least : 1)
                     : context_bytes(&program.header);
    return NEUTRON_NONE;
}

static NeutronError prepare_in(void *context, size_t contextSize, const NeutronModelConfig *config,
                               const NeutronModelSizes *sizes, bool linked,
                               NeutronModelHandle *handle) {
    nd_program program;
    uint32_t timeout = 0;
    if (context == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if ((uintptr_t)context % NEUTRON_ALIGNMENT) return NEUTRON_ERROR_ALIGNMENT;
    NeutronError error = validated(&program, config, sizes, linked, &timeout, handle);
    if (error != NEUTRON_NONE) return error;
    uint32_t window = 0;
    if (contextSize < context_bytes(&program.header)) {
        const size_t bare = bare_bytes(&program.header);
        if (contextSize <= bare) return NEUTRON_ERROR_CONTEXT_TOO_SMALL;
        window = (uint32_t)(contextSize - bare);
        error = check_window(&program, window);
        if (error != NEUTRON_NONE) return error;
    }
    return build(context, &program, timeout, 0, window, handle);
}

NeutronError neutronModelPrepareIn(void *context, size_t contextSize,
                                   const NeutronModelConfig *config, const NeutronModelSizes *sizes,
                                   NeutronModelHandle *handle) {
    return prepare_in(context, contextSize, config, sizes, false, handle);
}

NeutronError neutronModelPrepareLinked(void *context, size_t contextSize,
                                       const NeutronModelConfig *config,
                                       const NeutronModelSizes *sizes, NeutronModelHandle *handle) {
    return prepare_in(context, contextSize, config, sizes, true, handle);
}

/* The window of a model that the driver allocates; 0: none, its constants become plain now. */
static NeutronError window_of(const nd_program *program, uint32_t *window) {
    *window = 0;
    if (!ND_DECODERS || !program->header.section_count) return NEUTRON_NONE;
    uint32_t wanted = 0;
    const NeutronError error = nd_window_wanted(program, &wanted);
    if (error != NEUTRON_NONE || wanted == program->header.plain_bytes) return error;
    const uint32_t least = nd_least_window(program);
    if (wanted < least) wanted = least;
    if (wanted == 0 || wanted >= program->header.plain_bytes) return NEUTRON_NONE;
    *window = wanted;
    return check_window(program, wanted);
}

NeutronError neutronModelPrepareChecked(const NeutronModelConfig *config,
                                        const NeutronModelSizes *sizes,
                                        NeutronModelHandle *handle) {
    nd_program program;
    uint32_t timeout = 0;
    NeutronModelHandle made = NULL;
    NeutronError error = validated(&program, config, sizes, false, &timeout, handle);
    if (error != NEUTRON_NONE) return error;
    uint32_t window = 0;
    error = window_of(&program, &window);
    if (error != NEUTRON_NONE) return error;
    uint64_t reserved_bytes = 0;
    error = nd_reserve_memory(&program, &reserved_bytes);
    if (error != NEUTRON_NONE) return error;
    const size_t constants = window ? aligned(window) : aligned(program.header.plain_bytes);
    void *context = neutronMemAlloc(NEUTRON_ALIGNMENT, bare_bytes(&program.header) + constants);
    error = context != NULL ? build(context, &program, timeout, 1, window, &made)
                            : NEUTRON_ERROR_NO_MEMORY;
    if (error != NEUTRON_NONE) {
        neutronMemFree(context);
        nd_release_memory(reserved_bytes);
        return error;
    }
    ((struct NeutronModel *)context)->reserved_bytes = reserved_bytes;
#if ND_THREADS
    const NeutronError refused = neutronSetThreads(made, nd_threads_wanted());
    if (refused != NEUTRON_NONE) {
        (void)neutronModelUnprepare(made);
        return refused;
    }
    struct NeutronModel *model = context;
    if (window == 0) /* a script runs calls out of their order, a window holds those of one */
        model->script = nd_script_make(&model->program, model->pool != NULL);
#endif
    *handle = made;
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

/* Claim the model, after the non-blocking run in flight if there is one. */
static NeutronError claim_for_end(NeutronModelHandle handle, struct NeutronModel **model) {
    const NeutronError error = nd_claim(handle, model);
    if (error != NEUTRON_ERROR_BUSY) return error;
    (void)neutronWait(handle, NULL);
    return nd_claim(handle, model);
}

NeutronError neutronModelUnprepare(NeutronModelHandle handle) {
    struct NeutronModel *model;
    NeutronError error = claim_for_end(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = nd_handle_end(model);
    if (error != NEUTRON_NONE) {
        nd_release(model);
        return error;
    }
#if ND_THREADS
    nd_pool_free(model->pool);
    nd_script_free(model->script);
#endif
    nd_release_memory(model->reserved_bytes);
    if (model->owned) neutronMemFree(model);
    return NEUTRON_NONE;
}

const char *neutronModelErrorDetail(NeutronModelHandle handle) {
    struct NeutronModel *model;
    if (nd_claim(handle, &model) != NEUTRON_NONE) return "";
    const char *text = model->detail_text;
    nd_release(model);
    return text;
}

static void fill_info(const nd_program *p, NeutronModelInfo *info) {
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
}

NeutronError neutronModelGetInfo(NeutronModelHandle handle, NeutronModelInfo *info) {
    struct NeutronModel *model;
    const NeutronError error = nd_enter(handle, &model);
    if (error != NEUTRON_NONE) return error;
    if (info != NULL) fill_info(&model->program, info);
    nd_leave(model);
    return info != NULL ? NEUTRON_NONE : NEUTRON_ERROR_ARGUMENT_NULL;
}

static NeutronError fill_tensor(const nd_program *p, uint32_t row, NeutronTensorInfo *info) {
    if (info == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if (row >= p->header.tensor_count) return NEUTRON_ERROR_ROW_RANGE;
    const NeutronTensorRecord t = nd_tensor(p, row);
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

NeutronError neutronModelGetTensor(NeutronModelHandle handle, uint32_t row,
                                   NeutronTensorInfo *info) {
    struct NeutronModel *model;
    NeutronError error = nd_enter(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = fill_tensor(&model->program, row, info);
    nd_leave(model);
    return error;
}

NeutronError neutronGetCycles(NeutronModelHandle handle, uint64_t *cycles) {
    struct NeutronModel *model;
    const NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    if (cycles != NULL) *cycles = model->cycles;
    nd_release(model);
    return cycles != NULL ? NEUTRON_NONE : NEUTRON_ERROR_ARGUMENT_NULL;
}

NeutronError neutronSetFill(NeutronModelHandle handle, uint8_t byte) {
    struct NeutronModel *model;
    const NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    model->fill = byte;
    nd_release(model);
    return NEUTRON_NONE;
}
