#include <string.h>

#include "model.h"

static NeutronError check(struct NeutronModel *model, const void *buffer, uint32_t bytes,
                          const char *name, uint32_t index) {
    if (bytes == 0 || (buffer != NULL && (uintptr_t)buffer % NEUTRON_ALIGNMENT == 0))
        return NEUTRON_NONE;
    nd_text_reset(&model->detail);
    nd_text_append(&model->detail, "%s %u, of %u bytes", name, index, bytes);
    return buffer == NULL ? NEUTRON_ERROR_ARGUMENT_NULL : NEUTRON_ERROR_ALIGNMENT;
}

NeutronError nd_check_buffers(struct NeutronModel *model, const NeutronDataConfig *data,
                              nd_buffers *buffers) {
    const nd_program *program = &model->program;
    if (data == NULL || (data->inputs == NULL && program->inputs) || data->outputs == NULL) {
        return NEUTRON_ERROR_ARGUMENT_NULL;
    }
    /* What is not declared is not read: callers leave it as it was in memory. */
    uint8_t *scratch = program->scratch_bytes ? data->outputs[program->outputs] : NULL;
    uint8_t *prefetch = program->prefetch_bytes ? data->scratchWeights : NULL;
    NeutronError error = check(model, scratch, program->scratch_bytes, "scratch", 0);
    if (error == NEUTRON_NONE)
        error = check(model, prefetch, program->prefetch_bytes, "scratchWeights", 0);
    for (uint32_t at = 0; error == NEUTRON_NONE && at < program->inputs; at++) {
        error = check(model, data->inputs[at], nd_tensor(program, at).bytes, "input", at);
    }
    for (uint32_t at = 0; error == NEUTRON_NONE && at < program->outputs; at++) {
        error = check(model, data->outputs[at], nd_tensor(program, program->inputs + at).bytes,
                      "output", at);
    }
    buffers->inputs = data->inputs;
    buffers->outputs = data->outputs;
    buffers->scratch = scratch;
    buffers->prefetch = prefetch;
    buffers->tcm = model->tcm;
    buffers->state = model->variables;
    return error;
}

void nd_clear_buffers(const struct NeutronModel *model, const nd_buffers *buffers) {
    const nd_program *program = &model->program;
    if (program->scratch_bytes) memset(buffers->scratch, model->fill, program->scratch_bytes);
    if (program->prefetch_bytes) memset(buffers->prefetch, model->fill, program->prefetch_bytes);
    if (program->header.tcm_bytes) memset(buffers->tcm, model->fill, program->header.tcm_bytes);
    for (uint32_t at = 0; at < program->outputs; at++) {
        memset(buffers->outputs[at], model->fill, nd_tensor(program, program->inputs + at).bytes);
    }
}

NeutronError neutronDataSetup(NeutronModelHandle handle, NeutronDataConfig *data) {
    struct NeutronModel *model;
    nd_buffers buffers;
    NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = nd_check_buffers(model, data, &buffers);
    nd_release(model);
    return error;
}
