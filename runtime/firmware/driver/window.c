/* Constants decoded while a model runs: each call's coded sections into a window of the context,
 * raw ones read where they are stored. Where the window is too small for all that a call reads,
 * blocks.c takes it on. */
#include <string.h>

#include "model.h"
#include "storage.h"

static uint32_t aligned(uint32_t size) {
    return (size + NEUTRON_ALIGNMENT - 1) / NEUTRON_ALIGNMENT * NEUTRON_ALIGNMENT;
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

bool nd_section_at(const nd_program *program, uint32_t offset, nd_section *s) {
    *s = nd_no_section(program);
    for (uint32_t number = 0; number < program->header.section_count; number++) {
        if (!nd_next_section(program, s)) return false;
        if (offset - s->plain < aligned(s->record.plain)) return true;
    }
    return false;
}

static bool coded(const nd_section *s) { return s->record.storage != NEUTRON_STORAGE_RAW; }

/* Bytes of the window that one call needs at least; UINT32_MAX where an operand leaves its section.
 */
static uint32_t call_bytes(const nd_program *program, const nd_instruction *at) {
    NeutronCallRecord record;
    nk_call call;
    nd_kernel_info info;
    uint32_t bytes = 0;
    nd_decode_call(program, NULL, at, &call, &record);
    if (!nd_kernel(record.kernel, &info)) return UINT32_MAX;
    for (uint32_t operand = 0; operand < at->operands; operand++) {
        nk_operand *o = &call.operands[operand];
        nd_section s;
        if (!o->present || o->region != NEUTRON_REGION_WEIGHTS) continue;
        const uint32_t offset = nd_operand_record(at, operand).offset;
        if (!nd_section_at(program, offset, &s) || offset - s.plain >= s.record.plain)
            return UINT32_MAX;
        o->available = s.record.plain - (offset - s.plain);
        if (coded(&s)) bytes += aligned(s.record.plain);
    }
    call.row1 = (int32_t)call.operands[info.output].height;
    if (neutronKernels[record.kernel](NK_CHECK, &call) != 0) return UINT32_MAX;
    return smaller(bytes, nd_block_bytes(program, at, &info, &call));
}

/* What a section is decoded in at once where only copies read it: a block of weights, or all. */
static uint32_t piece_bytes(const nd_section *s) {
    return aligned(s->blocks ? s->block_bytes : s->record.plain);
}

/* Of the window that bytes of region WEIGHTS need which are read one piece after the other. */
static uint32_t range_bytes(const nd_program *program, uint32_t offset, uint32_t bytes) {
    nd_section s = nd_no_section(program);
    uint32_t most = 0;
    for (uint32_t number = 0; number < program->header.section_count; number++) {
        if (!nd_next_section(program, &s)) return UINT32_MAX;
        const bool read = s.plain < offset + bytes && offset < s.plain + aligned(s.record.plain);
        if (read && coded(&s) && piece_bytes(&s) > most) most = piece_bytes(&s);
    }
    return most;
}

static uint32_t copy_bytes(const nd_program *program, const nd_instruction *at) {
    NeutronDmaRecord d;
    nd_body(at, &d, sizeof d);
    return d.source_region == NEUTRON_REGION_WEIGHTS
               ? range_bytes(program, d.source_offset, d.bytes)
               : 0;
}

uint32_t nd_least_window(const nd_program *program) {
    uint32_t most = 0;
    for (uint32_t row = 0; row < program->header.state_count; row++) {
        const NeutronStateRecord s = nd_state(program, row);
        if (s.source == NEUTRON_NO_SOURCE) continue;
        const uint32_t bytes = range_bytes(program, s.source, s.bytes);
        if (bytes > most) most = bytes;
    }
    uint8_t opcode = NEUTRON_OPCODE_CALL;
    for (uint32_t offset = program->header.code_offset; opcode != NEUTRON_OPCODE_END;) {
        uint32_t room[ND_MAX_WORDS], bytes = 0;
        const nd_instruction at = nd_instruction_at(program, offset, room);
        if (at.opcode == NEUTRON_OPCODE_CALL) bytes = call_bytes(program, &at);
        if (at.opcode == NEUTRON_OPCODE_DMA) bytes = copy_bytes(program, &at);
        if (bytes > most) most = bytes;
        offset += at.bytes;
        opcode = at.opcode;
    }
    return most;
}

static void decode(const nd_program *program, const nd_section *s, uint8_t *to) {
    const uint8_t *from = program->stored + s->stored; /* streams were checked before */
    if (s->record.storage == NEUTRON_STORAGE_COLUMNS)
        (void)nd_decode_columns(s, from, 0, nd_padded_channels(s), to);
    else (void)nd_decode_weights(s, from, 0, s->blocks, to);
}

/* What lies in the window before the constants of each of several calls. */
typedef struct {
    const void *call;
    uint32_t bytes;
} head;

enum { HEAD_BYTES = NEUTRON_ALIGNMENT };
_Static_assert(sizeof(head) <= HEAD_BYTES, "constants behind a head are aligned");

/* Where in the window the constants of a call are; false: they are not there. */
static bool find(const struct NeutronModel *model, const void *call, uint32_t *found) {
    *found = 0;
    if (model->window_call != NULL) return model->window_call == call;
    for (uint32_t at = 0; at < model->window_used;) {
        head one;
        memcpy(&one, model->window + at, sizeof one);
        at += HEAD_BYTES;
        *found = at;
        if (one.call == call) return true;
        at += one.bytes;
    }
    return false;
}

static void empty_window(struct NeutronModel *model) {
    model->window_call = NULL;
    model->window_used = 0;
}

/* Room for a call's constants behind those that are there, so that a loop over several calls
 * decodes each once; where there is none, in their place. False: the window is too small. */
static bool make_room(struct NeutronModel *model, const void *call, uint32_t bytes,
                      uint32_t *found) {
    const uint64_t with_head = (uint64_t)bytes + HEAD_BYTES;
    if (model->window_call != NULL || with_head > model->window_bytes - model->window_used)
        empty_window(model);
    *found = model->window_used;
    if (with_head <= model->window_bytes - model->window_used) {
        const head one = {call, bytes};
        memcpy(model->window + *found, &one, sizeof one);
        model->window_used += HEAD_BYTES + bytes;
        *found += HEAD_BYTES;
        return true;
    }
    model->window_call = bytes <= model->window_bytes ? call : NULL;
    return model->window_call != NULL;
}

/* The next operand of a call from `*operand` on that is a constant; false behind the last. */
static bool next_constant(const nd_program *program, const nd_instruction *at, const nk_call *call,
                          uint32_t *operand, nd_section *s) {
    for (; *operand < at->operands; ++*operand) {
        const nk_operand *o = &call->operands[*operand];
        if (o->present && o->region == NEUTRON_REGION_WEIGHTS &&
            nd_section_at(program, nd_operand_record(at, *operand).offset, s))
            return true;
    }
    return false;
}

bool nd_place_constants(struct NeutronModel *model, const nd_instruction *at, nk_call *call) {
    const nd_program *program = &model->program;
    nd_section s;
    uint32_t bytes = 0;
    bool fits = true;
    for (uint32_t operand = 0; next_constant(program, at, call, &operand, &s); operand++) {
        const uint32_t before = nd_operand_record(at, operand).offset - s.plain;
        if (!coded(&s)) {
            call->operands[operand].data =
                (uint8_t *)(uintptr_t)(program->stored + s.stored) + before;
            continue;
        }
        fits = fits && aligned(s.record.plain) <= model->window_bytes - bytes;
        if (fits) bytes += aligned(s.record.plain);
    }
    if (bytes == 0 && fits) return true;
    uint32_t place = 0;
    const bool decoded = fits && find(model, call->place, &place);
    if (!decoded && !(fits && make_room(model, call->place, bytes, &place))) {
        empty_window(model); /* blocks of the call take all of it */
        return false;
    }
    uint8_t *to = model->window + place;
    for (uint32_t operand = 0; next_constant(program, at, call, &operand, &s); operand++) {
        if (!coded(&s)) continue;
        if (!decoded) decode(program, &s, to);
        call->operands[operand].data = to + (nd_operand_record(at, operand).offset - s.plain);
        to += aligned(s.record.plain);
    }
    return true;
}

/* Bytes [first, last) of a coded section, counted from its start. */
static void read_section(const struct NeutronModel *model, const nd_section *s, uint32_t first,
                         uint32_t last, uint8_t *to) {
    const uint8_t *from = model->program.stored + s->stored;
    if (s->blocks == 0) {
        decode(&model->program, s, model->window);
        memcpy(to, model->window + first, last - first);
        return;
    }
    for (uint32_t block = first / s->block_bytes; first < last; block++) {
        const uint32_t start = block * s->block_bytes;
        const uint32_t end = smaller(start + s->block_bytes, last);
        (void)nd_decode_weights(s, from, block, 1, model->window);
        memcpy(to, model->window + (first - start), end - first);
        to += end - first;
        first = end;
    }
}

void nd_read_constants(struct NeutronModel *model, uint32_t offset, uint32_t bytes, uint8_t *to) {
    nd_section s = nd_no_section(&model->program);
    memset(to, 0, bytes); /* what lies between sections */
    for (uint32_t number = 0; number < model->program.header.section_count; number++) {
        if (!nd_next_section(&model->program, &s)) return;
        const uint32_t first = offset > s.plain ? offset : s.plain;
        const uint32_t end = s.plain + s.record.plain, wanted = offset + bytes;
        const uint32_t last = end < wanted ? end : wanted;
        if (first >= last) continue;
        if (coded(&s)) {
            read_section(model, &s, first - s.plain, last - s.plain, to + (first - offset));
            empty_window(model);
        } else {
            memcpy(to + (first - offset), model->program.stored + s.stored + (first - s.plain),
                   last - first);
        }
    }
}
