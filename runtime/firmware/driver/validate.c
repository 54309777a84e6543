#include <stddef.h>
#include <string.h>

#include "model.h"

/* Instructions executed in one run. The longest cascades of the zoo need some thousands; this many
 * still take well under a minute to skip, so no file can make the driver hang. */
static const uint64_t max_executed = UINT64_C(1) << 24;
/* Multiplications and bytes moved in one run, copies included: a thousand times what the largest
 * model of the zoo takes, minutes of plain loops. */
static const uint64_t max_work = UINT64_C(1) << 40;

/* Where the walk over the instructions stands. */
typedef struct {
    const nd_program *program;
    nd_text *detail;
    uint32_t end;        /* byte after the last instruction */
    uint32_t loop_words; /* of the body of the open loop that are still to come; 0 outside */
    uint32_t iterations; /* of the open loop; 1 outside */
    uint64_t calls, executed, work;
    uint32_t called[(NEUTRON_KERNEL_LIMIT + 31) / 32];
} walk;

static NeutronError say(const walk *w, NeutronError error, const nd_instruction *at,
                        const char *what) {
    nd_text_append(w->detail, "byte %u: %s", at->offset, what);
    return error;
}

static NeutronError check_length(const walk *w, const nd_instruction *at) {
    static const uint16_t bytes[] = {
        [NEUTRON_OPCODE_END] = sizeof(NeutronInstructionRecord),
        [NEUTRON_OPCODE_DMA] = sizeof(NeutronInstructionRecord) + sizeof(NeutronDmaRecord),
        [NEUTRON_OPCODE_WAIT] = sizeof(NeutronInstructionRecord) + sizeof(NeutronWaitRecord),
        [NEUTRON_OPCODE_LOOP] = sizeof(NeutronInstructionRecord) + sizeof(NeutronLoopRecord),
    };
    if (at->opcode > NEUTRON_OPCODE_LOOP)
        return say(w, NEUTRON_ERROR_INSTRUCTION, at, "unknown opcode");
    if (at->words == 0 || at->bytes == 0 || (w->loop_words && at->words > w->loop_words)) {
        return say(w, NEUTRON_ERROR_INSTRUCTION, at, "the instruction leaves the code or its loop");
    }
    if (at->opcode != NEUTRON_OPCODE_CALL &&
        (at->operands || at->words * sizeof(uint32_t) != bytes[at->opcode])) {
        return say(w, NEUTRON_ERROR_INSTRUCTION, at, "the instruction has a wrong length");
    }
    return NEUTRON_NONE;
}

static NeutronError open_loop(walk *w, const nd_instruction *at) {
    NeutronLoopRecord loop;
    if (w->loop_words) return say(w, NEUTRON_ERROR_LOOP, at, "a loop inside a loop");
    nd_body(at, &loop, sizeof loop);
    if (loop.iterations == 0) return say(w, NEUTRON_ERROR_LOOP, at, "a loop of no iterations");
    /* A packed instruction is never shorter than its first word, and a quarter byte for each more.
     */
    const uint64_t left = w->end - at->offset - at->bytes;
    const bool packed = (w->program->header.flags & NEUTRON_FLAG_PACKED) != 0;
    if (loop.body_words == 0 || loop.body_words > (packed ? 4 * left : left / sizeof(uint32_t))) {
        return say(w, NEUTRON_ERROR_LOOP, at, "the body of the loop is empty or leaves the code");
    }
    w->loop_words = loop.body_words;
    w->iterations = loop.iterations;
    return NEUTRON_NONE;
}

/* Whether END is the last instruction: behind packed ones the rest of a word is zeros. */
static bool last_word(const walk *w, const nd_instruction *at) {
    const uint32_t from = at->offset + at->bytes;
    const bool packed = (w->program->header.flags & NEUTRON_FLAG_PACKED) != 0;
    for (uint32_t byte = from; byte < w->end; byte++) {
        if (!packed || byte - from >= sizeof(uint32_t) - 1 || w->program->microcode[byte])
            return false;
    }
    return true;
}

static NeutronError check_instruction(walk *w, const nd_instruction *at) {
    uint64_t work = 0;
    NeutronError error = check_length(w, at);
    if (error != NEUTRON_NONE) return error;
    switch (at->opcode) {
    case NEUTRON_OPCODE_CALL:
        error = nd_check_call(w->program, at, w->called, &work, w->detail);
        w->calls += w->iterations;
        break;
    case NEUTRON_OPCODE_DMA: error = nd_check_copy(w->program, at, &work, w->detail); break;
    case NEUTRON_OPCODE_WAIT: error = nd_check_wait(at, w->detail); break;
    case NEUTRON_OPCODE_LOOP: return open_loop(w, at);
    default:
        if (w->loop_words || !last_word(w, at)) {
            return say(w, NEUTRON_ERROR_INSTRUCTION, at, "END before the end of the code");
        }
    }
    if (error != NEUTRON_NONE) return error;
    w->executed += w->iterations;
    if (w->executed > max_executed || work > max_work / w->iterations ||
        w->work > max_work - work * w->iterations) {
        return say(w, NEUTRON_ERROR_CALL_COUNT, at,
                   "one run would execute, compute or move too much");
    }
    w->work += work * w->iterations;
    return NEUTRON_NONE;
}

static NeutronError check_code(walk *w) {
    const NeutronHeaderRecord *h = &w->program->header;
    uint8_t last = NEUTRON_OPCODE_CALL;
    for (uint32_t offset = h->code_offset; offset < w->end && last != NEUTRON_OPCODE_END;) {
        uint32_t room[ND_MAX_WORDS];
        const nd_instruction at = nd_instruction_at(w->program, offset, room);
        const NeutronError error = check_instruction(w, &at);
        if (error != NEUTRON_NONE) return error;
        offset += at.bytes;
        if (at.opcode != NEUTRON_OPCODE_LOOP && w->loop_words) {
            w->loop_words -= at.words;
            if (w->loop_words == 0) w->iterations = 1;
        }
        last = at.opcode;
    }
    if (last != NEUTRON_OPCODE_END) {
        nd_text_append(w->detail, "byte %u: the code does not finish with END", w->end);
        return NEUTRON_ERROR_INSTRUCTION;
    }
    if (w->calls != h->call_count) {
        nd_text_append(w->detail, "the code makes %llu calls, the header says %u",
                       (unsigned long long)w->calls, h->call_count);
        return NEUTRON_ERROR_CALL_COUNT;
    }
    if (w->program->profile_bytes > w->executed * ND_PROFILE_RECORD_BYTES) {
        nd_text_append(w->detail, "byte %u: %u bytes of profile for %llu instructions",
                       (uint32_t)(offsetof(NeutronHeaderRecord, layout) + sizeof(uint32_t)),
                       w->program->profile_bytes, (unsigned long long)w->executed);
        return NEUTRON_ERROR_HEADER;
    }
    return nd_check_kernels_block(w->program, w->called, w->detail);
}

NeutronError nd_validate(nd_program *program, const NeutronModelConfig *config,
                         const NeutronModelSizes *sizes, bool linked, nd_text *detail) {
    nd_text_reset(detail);
    const NeutronError error = nd_check_container(program, config, sizes, linked, detail);
    if (error != NEUTRON_NONE) return error;
    walk w;
    memset(&w, 0, sizeof w);
    w.program = program;
    w.detail = detail;
    w.end = program->header.code_offset + program->header.code_bytes;
    w.iterations = 1;
    const NeutronError found = check_code(&w);
    program->work = w.work;
    return found;
}

NeutronError neutronModelCheck(const NeutronModelConfig *config, const NeutronModelSizes *sizes,
                               char *detail, size_t detailSize) {
    nd_program program;
    nd_text text = {detail, detail ? detailSize : 0, 0};
    NeutronError error = nd_validate(&program, config, sizes, false, &text);
    if (error == NEUTRON_NONE) error = nd_check_memory(&program, &text);
    return ND_DECODERS && error == NEUTRON_NONE ? nd_decode_sections(&program, NULL, &text) : error;
}
