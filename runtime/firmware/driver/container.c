#include <stddef.h>
#include <string.h>

#include "footprint.h"
#include "model.h"

/* Offsets of fields for messages. */
#define HEADER_AT(field) ((uint32_t)offsetof(NeutronHeaderRecord, field))

static NeutronError header_error(nd_text *detail, uint32_t offset, const char *field,
                                 uint32_t value) {
    nd_text_append(detail, "byte %u: %s is %u", offset, field, value);
    return NEUTRON_ERROR_HEADER;
}

static NeutronError shorter(nd_text *detail, const char *block, size_t real, uint32_t declared) {
    nd_text_append(detail, "%s has %llu bytes, the header declares %u", block,
                   (unsigned long long)real, declared);
    return NEUTRON_ERROR_TRUNCATED;
}

/* Bytes [offset, offset + bytes) behind the header, on a word. */
static int section_fits(const nd_program *program, uint32_t offset, uint64_t bytes) {
    return offset % sizeof(uint32_t) == 0 && offset >= sizeof(NeutronHeaderRecord) &&
           bytes <= program->header.microcode_bytes &&
           offset <= program->header.microcode_bytes - bytes;
}

static NeutronError check_header(nd_program *program, const NeutronModelSizes *sizes,
                                 nd_text *detail) {
    const NeutronHeaderRecord *h = &program->header;
    uint32_t words[2] = {0, 0};
    if (sizes->microcode < sizeof words)
        return shorter(detail, "the microcode", sizes->microcode, sizeof *h);
    nd_read(program, 0, words, sizeof words);
    if (words[0] != NEUTRON_MAGIC) {
        nd_text_append(detail, "byte 0: the magic is %u, not %u", words[0], NEUTRON_MAGIC);
        return NEUTRON_ERROR_MAGIC;
    }
    if (words[1] != NEUTRON_VERSION_WORD) {
        nd_text_append(detail, "byte 4: the version word is %u, not %u", words[1],
                       NEUTRON_VERSION_WORD);
        return NEUTRON_ERROR_OTHER_CONVERTER;
    }
    if (sizes->microcode < sizeof *h)
        return shorter(detail, "the microcode", sizes->microcode, sizeof *h);
    nd_read(program, 0, &program->header, sizeof *h);
    if (h->header_bytes != sizeof *h)
        return header_error(detail, HEADER_AT(header_bytes), "header_bytes", h->header_bytes);
    if (h->flags & ~(NEUTRON_FLAG_PROFILING | NEUTRON_FLAG_PACKED))
        return header_error(detail, HEADER_AT(flags), "flags", h->flags);
    for (uint32_t at = 0; at < sizeof h->reserved / sizeof h->reserved[0]; at++) {
        const uint32_t offset = HEADER_AT(reserved) + at * (uint32_t)sizeof h->reserved[0];
        if (h->reserved[at])
            return header_error(detail, offset, "a reserved word", h->reserved[at]);
    }
    if (h->microcode_bytes > sizes->microcode) {
        return shorter(detail, "the microcode", sizes->microcode, h->microcode_bytes);
    }
    if (h->microcode_bytes < sizeof *h) {
        return header_error(detail, HEADER_AT(microcode_bytes), "microcode_bytes",
                            h->microcode_bytes);
    }
    if (h->weights_bytes > sizes->weights)
        return shorter(detail, "the weights block", sizes->weights, h->weights_bytes);
    if (h->kernels_bytes > sizes->kernels)
        return shorter(detail, "the kernels block", sizes->kernels, h->kernels_bytes);
    if (!section_fits(program, h->identity_offset, sizeof program->identity)) {
        return header_error(detail, HEADER_AT(identity_offset), "identity_offset",
                            h->identity_offset);
    }
    nd_read(program, h->identity_offset, &program->identity, sizeof program->identity);
    return NEUTRON_NONE;
}

static NeutronError check_identity(nd_program *program, nd_text *detail) {
    const NeutronIdentityRecord *id = &program->identity;
    const uint32_t at = program->header.identity_offset;
    char name[sizeof id->target + 1] = {0};
    if (id->format_version != NEUTRON_FORMAT_VERSION) {
        nd_text_append(detail, "byte %u: format version %u, the driver has %u",
                       at + (uint32_t)offsetof(NeutronIdentityRecord, format_version),
                       id->format_version, NEUTRON_FORMAT_VERSION);
        return NEUTRON_ERROR_FORMAT_VERSION;
    }
    for (uint32_t c = 0; c < sizeof id->target; c++) {
        const uint8_t letter = id->target[c];
        const int printable = letter > ' ' && letter < 127;
        const int padding = letter == 0 && c > 0;
        if (!(printable && (c == 0 || name[c - 1])) && !padding) {
            nd_text_append(detail, "byte %u: the target's name is not ASCII padded with zeros",
                           at + c);
            return NEUTRON_ERROR_UNKNOWN_TARGET;
        }
        name[c] = (char)letter;
    }
    program->target = nm_target_find(name);
    if (program->target == NULL) {
        nd_text_append(detail, "byte %u: target '%s'", at, name);
        return NEUTRON_ERROR_UNKNOWN_TARGET;
    }
    const nm_target *t = program->target;
    if (id->hw_version != t->hw_version || id->cores != t->cores || id->units != t->units ||
        id->length != t->length) {
        nd_text_append(
            detail,
            "byte %u: made for hardware %u, %u x %u x %u; target %s is hardware %u, %u x %u x %u",
            at + (uint32_t)offsetof(NeutronIdentityRecord, hw_version), id->hw_version, id->cores,
            id->units, id->length, name, t->hw_version, t->cores, t->units, t->length);
        return NEUTRON_ERROR_TARGET_GEOMETRY;
    }
    return NEUTRON_NONE;
}

static NeutronError check_layout(nd_program *program, const NeutronModelSizes *sizes,
                                 nd_text *detail) {
    const NeutronHeaderRecord *h = &program->header;
    const uint32_t *words = h->layout;
    const int profiling = (h->flags & NEUTRON_FLAG_PROFILING) != 0;
    program->scratch_bytes = words[0];
    /* The top bit of the profile size belongs to NXP's container and says nothing about the size.
     */
    program->profile_bytes = profiling ? words[1] & 0x7FFFFFFFu : 0;
    program->debug_bytes = profiling ? words[2] : 0;
    program->prefetch_bytes = profiling ? words[3] : words[1];
    program->inputs = profiling ? words[4] : words[2];
    program->outputs = profiling ? words[5] : words[3];
    if (!profiling && (words[4] != h->call_count || words[5] != 0)) {
        return header_error(detail, HEADER_AT(layout) + 16, "the number of calls", words[4]);
    }
    if (program->debug_bytes) { /* nothing writes it yet, so a size can only be a mistake */
        return header_error(detail, HEADER_AT(layout) + 8, "the size of the debug buffer",
                            program->debug_bytes);
    }
    /* A tensor's index is one byte. */
    if (program->inputs > 256)
        return header_error(detail, HEADER_AT(layout), "the number of inputs", program->inputs);
    if (program->outputs < 1 || program->outputs > 256) {
        return header_error(detail, HEADER_AT(layout), "the number of outputs", program->outputs);
    }
    if (h->tensor_count != program->inputs + program->outputs) {
        return header_error(detail, HEADER_AT(tensor_count), "tensor_count", h->tensor_count);
    }
    if (!section_fits(program, h->tensors_offset,
                      (uint64_t)h->tensor_count * sizeof(NeutronTensorRecord))) {
        return header_error(detail, HEADER_AT(tensors_offset), "tensors_offset", h->tensors_offset);
    }
    if (h->code_bytes < sizeof(NeutronInstructionRecord) || h->code_bytes % sizeof(uint32_t) ||
        !section_fits(program, h->code_offset, h->code_bytes)) {
        nd_text_append(detail, "byte %u: %u bytes of instructions at byte %u",
                       HEADER_AT(code_offset), h->code_bytes, h->code_offset);
        return NEUTRON_ERROR_HEADER;
    }
    if (h->tcm_bytes > program->target->tcm_bytes) {
        return header_error(detail, HEADER_AT(tcm_bytes), "more than the target has: tcm_bytes",
                            h->tcm_bytes);
    }
    if (h->state_bytes > NEUTRON_MAX_STATE_BYTES) {
        return header_error(detail, HEADER_AT(state_bytes), "state_bytes", h->state_bytes);
    }
    const uint64_t states = (uint64_t)h->state_count * sizeof(NeutronStateRecord);
    if (h->state_count ? !section_fits(program, h->states_offset, states) : h->states_offset != 0) {
        return header_error(detail, HEADER_AT(states_offset), "states_offset", h->states_offset);
    }
    if (h->section_count && !section_fits(program, h->sections_offset, 0)) {
        return header_error(detail, HEADER_AT(sections_offset), "sections_offset",
                            h->sections_offset);
    }
    if (sizes->scratch < program->scratch_bytes || sizes->prefetch < program->prefetch_bytes) {
        nd_text_append(detail, "scratch has %llu of %u bytes, prefetch %llu of %u",
                       (unsigned long long)sizes->scratch, program->scratch_bytes,
                       (unsigned long long)sizes->prefetch, program->prefetch_bytes);
        return NEUTRON_ERROR_BUFFER_TOO_SMALL;
    }
    return NEUTRON_NONE;
}

static NeutronError check_tensor(const nd_program *program, uint32_t row, nd_text *detail) {
    const NeutronTensorRecord t = nd_tensor(program, row);
    const uint32_t output = row >= program->inputs;
    const uint32_t index = output ? row - program->inputs : row;
    const uint32_t dims = sizeof t.dims / sizeof t.dims[0];
    uint64_t bytes = nd_item_bytes(t.dtype);
    int right = t.kind == output && t.index == index && t.rank <= dims && bytes != 0;
    for (uint32_t at = 0; at < dims; at++) {
        const int used = at < t.rank;
        right = right && (used ? t.dims[at] != 0 : t.dims[at] == 0);
        if (used) bytes *= t.dims[at];
        if (bytes > UINT32_MAX)
            bytes = UINT64_C(1) << 32; /* more than the field can say; and it cannot wrap */
    }
    if (right && bytes == t.bytes) return NEUTRON_NONE;
    nd_text_append(
        detail,
        "byte %u: row %u (kind %u, index %u, type %u, rank %u) says %u bytes, its dimensions "
        "give %llu",
        program->header.tensors_offset + row * (uint32_t)sizeof t, row, t.kind, t.index, t.dtype,
        t.rank, t.bytes, (unsigned long long)bytes);
    return NEUTRON_ERROR_TENSOR_TABLE;
}

NeutronError nd_check_container(nd_program *program, const NeutronModelConfig *config,
                                const NeutronModelSizes *sizes, bool linked, nd_text *detail) {
    memset(program, 0, sizeof *program);
    if (config == NULL || sizes == NULL || config->microcode == NULL)
        return NEUTRON_ERROR_ARGUMENT_NULL;
    if ((config->weights == NULL && sizes->weights) ||
        (config->kernels == NULL && sizes->kernels)) {
        return NEUTRON_ERROR_ARGUMENT_NULL;
    }
    program->microcode = config->microcode;
    program->stored = config->weights;
    program->weights = config->weights;
    program->kernels = config->kernels;
    if (((uintptr_t)config->microcode | (uintptr_t)config->weights) % NEUTRON_ALIGNMENT) {
        nd_text_append(detail, "microcode or weights");
        return NEUTRON_ERROR_ALIGNMENT;
    }
    NeutronError error = check_header(program, sizes, detail);
    if (error == NEUTRON_NONE && !linked) error = nd_check_checksum(program, detail);
    if (error == NEUTRON_NONE) error = check_identity(program, detail);
    if (error == NEUTRON_NONE) error = check_layout(program, sizes, detail);
    for (uint32_t row = 0; error == NEUTRON_NONE && row < program->header.tensor_count; row++) {
        error = check_tensor(program, row, detail);
    }
    if (error == NEUTRON_NONE) error = nd_check_sections(program, detail);
    return error == NEUTRON_NONE ? nd_check_states(program, detail) : error;
}
