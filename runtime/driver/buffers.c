#include "model.h"

static NeutronError check(struct NeutronModel *model, const void *buffer, uint32_t bytes,
                          const char *name, uint32_t index) {
    if (bytes == 0 || (buffer != NULL && (uintptr_t)buffer % NEUTRON_ALIGNMENT == 0))
        return NEUTRON_NONE;
    nd_text_reset(&model->detail);
    nd_say(&model->detail, "%s %u, of %u bytes", name, index, bytes);
    return buffer == NULL ? NEUTRON_ERROR_ARGUMENT_NULL : NEUTRON_ERROR_ALIGNMENT;
}

NeutronError nd_check_buffers(struct NeutronModel *model, const NeutronDataConfig *data,
                              nd_buffers *buffers) {
    const nd_program *program = &model->program;
    if (data == NULL || (data->inputs == NULL && program->inputs) || data->outputs == NULL) {
        return NEUTRON_ERROR_ARGUMENT_NULL;
    }
    NeutronError error = check(model, data->scratch, program->scratch_bytes, "scratch", 0);
    if (error == NEUTRON_NONE)
        error = check(model, data->scratchWeights, program->prefetch_bytes, "scratchWeights", 0);
    for (uint32_t at = 0; error == NEUTRON_NONE && at < program->inputs; at++) {
        error = check(model, data->inputs[at], nd_tensor(program, at).bytes, "input", at);
    }
    for (uint32_t at = 0; error == NEUTRON_NONE && at < program->outputs; at++) {
        error = check(model, data->outputs[at], nd_tensor(program, program->inputs + at).bytes,
                      "output", at);
    }
    buffers->inputs = data->inputs;
    buffers->outputs = data->outputs;
    buffers->scratch = data->scratch;
    buffers->prefetch = data->scratchWeights;
    buffers->tcm = model->tcm;
    buffers->state = model->variables;
    return error;
}

NeutronError neutronDataSetup(NeutronModelHandle handle, NeutronDataConfig *data) {
    nd_buffers buffers;
    const NeutronError error = nd_handle_error(handle);
    if (error != NEUTRON_NONE) return error;
    if (data != NULL && data->outputs != NULL && data->scratch == NULL &&
        handle->program.scratch_bytes) {
        data->scratch = data->outputs[handle->program.outputs];
    }
    return nd_check_buffers(handle, data, &buffers);
}
