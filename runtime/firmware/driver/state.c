/* State: bytes of a handle that keep their contents from run to run. */
#include <string.h>

#include "model.h"

NeutronStateRecord nd_state(const nd_program *program, uint32_t row) {
    NeutronStateRecord record;
    nd_read(program, program->header.states_offset + row * (uint32_t)sizeof record, &record,
            sizeof record);
    return record;
}

static NeutronError malformed(const nd_program *program, uint32_t row, const NeutronStateRecord *s,
                              nd_text *detail) {
    nd_text_append(detail,
                   "byte %u: state %u has %u bytes at offset %u, from byte %u of the weights",
                   program->header.states_offset + row * (uint32_t)sizeof *s, row, s->bytes,
                   s->offset, s->source);
    return NEUTRON_ERROR_STATE_TABLE;
}

NeutronError nd_check_states(const nd_program *program, nd_text *detail) {
    const NeutronHeaderRecord *h = &program->header;
    const uint32_t weights = nd_weights_bytes(program);
    uint32_t end = 0; /* rows follow each other, so that every byte has its first contents */
    for (uint32_t row = 0; row < h->state_count; row++) {
        const NeutronStateRecord s = nd_state(program, row);
        const int whole = s.offset == end && s.bytes != 0 && s.bytes % NEUTRON_ALIGNMENT == 0;
        if (!whole || s.bytes > h->state_bytes - end) return malformed(program, row, &s, detail);
        const int filled = s.source == NEUTRON_NO_SOURCE;
        const int inside =
            !filled && s.fill == 0 && s.bytes <= weights && s.source <= weights - s.bytes;
        if (!filled && !inside) return malformed(program, row, &s, detail);
        end += s.bytes;
    }
    if (end == h->state_bytes) return NEUTRON_NONE;
    nd_text_append(detail, "the state table has %u bytes, the header says %u", end, h->state_bytes);
    return NEUTRON_ERROR_STATE_TABLE;
}

void nd_reset_state(struct NeutronModel *model) {
    for (uint32_t row = 0; row < model->program.header.state_count; row++) {
        const NeutronStateRecord s = nd_state(&model->program, row);
        uint8_t *to = model->variables + s.offset;
        if (s.source != NEUTRON_NO_SOURCE) {
            if (ND_DECODERS && model->window != NULL)
                nd_read_constants(model, s.source, s.bytes, to);
            else memcpy(to, model->program.weights + s.source, s.bytes);
            continue;
        }
        for (uint32_t at = 0; at < s.bytes; at += (uint32_t)sizeof s.fill) {
            memcpy(to + at, &s.fill, sizeof s.fill);
        }
    }
}

NeutronError neutronStateReset(NeutronModelHandle handle) {
    struct NeutronModel *model;
    const NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    nd_reset_state(model);
    nd_release(model);
    return NEUTRON_NONE;
}

NeutronError neutronStateGet(NeutronModelHandle handle, const void **bytes, size_t *size) {
    struct NeutronModel *model;
    const NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    const bool asked = bytes != NULL && size != NULL;
    if (asked) {
        *bytes = model->variables;
        *size = model->program.header.state_bytes;
    }
    nd_release(model);
    return asked ? NEUTRON_NONE : NEUTRON_ERROR_ARGUMENT_NULL;
}

static NeutronError set_state(struct NeutronModel *model, const void *bytes, size_t size) {
    if (size != model->program.header.state_bytes) return NEUTRON_ERROR_STATE_SIZE;
    if (size == 0) return NEUTRON_NONE;
    if (bytes == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    memcpy(model->variables, bytes, size);
    return NEUTRON_NONE;
}

NeutronError neutronStateSet(NeutronModelHandle handle, const void *bytes, size_t size) {
    struct NeutronModel *model;
    NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = set_state(model, bytes, size);
    nd_release(model);
    return error;
}

static NeutronError place_state(struct NeutronModel *model, void *memory, size_t size) {
    if (size != model->program.header.state_bytes) return NEUTRON_ERROR_STATE_SIZE;
    if (size == 0) return NEUTRON_NONE;
    if (memory == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if ((uintptr_t)memory % NEUTRON_ALIGNMENT) return NEUTRON_ERROR_ALIGNMENT;
    model->variables = memory;
    return NEUTRON_NONE;
}

NeutronError neutronStatePlace(NeutronModelHandle handle, void *memory, size_t size) {
    struct NeutronModel *model;
    NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = place_state(model, memory, size);
    nd_release(model);
    return error;
}
