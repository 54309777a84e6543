#include <stddef.h>
#include <string.h>

#include "model.h"
#include "storage.h"

enum { WORDS = sizeof(NeutronSectionRecord) / sizeof(uint32_t) };

static const NeutronSectionForm FORMS[] = NEUTRON_SECTION_FORMS;

static uint64_t up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/* Plain bytes of weights as their record describes them; more than any section may have where a
 * factor is zero or the product too large. */
static uint64_t described_bytes(const nd_section *s) {
    const NeutronSectionRecord *r = &s->record;
    const uint64_t factors[] = {r->groups, up(r->channels, s->units), r->taps,
                                up(r->inputs, s->length)};
    uint64_t bytes = 1;
    for (size_t at = 0; at < sizeof factors / sizeof factors[0]; at++) {
        if (factors[at] == 0 || factors[at] > NEUTRON_MAX_PLAIN_BYTES / bytes) return UINT64_MAX;
        bytes *= factors[at];
    }
    return bytes;
}

/* Is `value` in a set of small numbers? */
static bool within(uint8_t set, uint8_t value) { return value < 8 && (set >> value & 1) != 0; }

/* Does the record say only what the table of forms allows? */
static bool formed(const NeutronSectionRecord *r) {
    if (r->storage >= sizeof FORMS / sizeof FORMS[0]) return false;
    const NeutronSectionForm *form = &FORMS[r->storage];
    const uint32_t sizes[] = {r->groups, r->channels, r->taps, r->inputs};
    for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
        if ((sizes[at] != 0) != within(form->sizes, (uint8_t)at)) return false;
    }
    return within(form->packings, r->packing) && r->parameter >= form->least &&
           r->parameter <= form->most && within(form->widths, r->width);
}

static bool sensible(const nd_section *s) {
    const NeutronSectionRecord *r = &s->record;
    switch (r->storage) {
    case NEUTRON_STORAGE_RAW: return r->stored == r->plain;
    case NEUTRON_STORAGE_COLUMNS:
        return r->plain % (sizeof(uint32_t) * r->parameter) == 0 &&
               r->channels <= r->plain / (sizeof(uint32_t) * r->parameter);
    case NEUTRON_STORAGE_GROUPS:
        return (UINT32_C(1) << r->parameter) % s->length == 0 && described_bytes(s) == r->plain;
    default: return described_bytes(s) == r->plain;
    }
}

bool nd_next_section(const nd_program *program, nd_section *s) {
    uint32_t words[WORDS];
    const NeutronIdentityRecord *id = &program->identity;
    s->stored += (uint32_t)up(s->record.stored, sizeof(uint32_t));
    s->plain += (uint32_t)up(s->record.plain, NEUTRON_ALIGNMENT);
    s->at = s->next;
    s->number++;
    if (!nd_unpack_words(program->microcode, &s->next, program->header.microcode_bytes, words,
                         WORDS))
        return false;
    memcpy(&s->record, words, sizeof s->record);
    const NeutronSectionRecord *r = &s->record;
    s->units = r->packing == NEUTRON_PACKING_FLAT ? 1 : id->units;
    s->length = r->packing == NEUTRON_PACKING_DENSE ? id->length : 1;
    if (!formed(r) || !sensible(s)) return false;
    if (r->plain == 0 || r->plain > NEUTRON_MAX_PLAIN_BYTES - s->plain) return false;
    if (s->stored > program->header.weights_bytes ||
        r->stored > program->header.weights_bytes - s->stored)
        return false;
    const uint32_t plain = s->plain + r->plain, stored = s->stored + r->stored;
    if (plain > NEUTRON_FREE_PLAIN_BYTES && plain / NEUTRON_MAX_EXPANSION > stored) return false;
    const bool weights = r->groups != 0 && r->storage != NEUTRON_STORAGE_RAW &&
                         r->storage != NEUTRON_STORAGE_COLUMNS;
    s->blocks = weights ? r->groups * (uint32_t)(up(r->channels, s->units) / s->units) : 0;
    s->block_bytes = weights ? r->plain / s->blocks : 0;
    return true;
}

nd_section nd_no_section(const nd_program *program) {
    nd_section none;
    memset(&none, 0, sizeof none);
    none.next = program->header.sections_offset;
    return none;
}

uint32_t nd_stored_bytes(const nd_program *program, nd_section *s, uint32_t offset,
                         uint64_t bytes) {
    const uint32_t wanted = bytes < UINT32_MAX - offset ? offset + (uint32_t)bytes : UINT32_MAX;
    uint32_t found = 0;
    if (program->header.section_count == 0) return 0;
    if (s->number == 0 || offset < s->plain) {
        *s = nd_no_section(program);
        (void)nd_next_section(program, s); /* checked before */
    }
    for (;; (void)nd_next_section(program, s)) {
        const uint32_t plain = s->record.plain, end = s->plain + plain;
        const uint32_t first = offset > s->plain ? offset : s->plain;
        const uint32_t last = end < wanted ? end : wanted;
        if (first < last)
            found += (uint32_t)(((uint64_t)(last - first) * s->record.stored + plain - 1) / plain);
        if (wanted <= end || s->number == program->header.section_count) return found;
    }
}

uint64_t nd_loaded_weights(const nd_instruction *at, const nd_kernel_info *info,
                           const nk_call *call, uint32_t *offset) {
    if (info->weights < 0) return 0;
    const NeutronOperandRecord o = nd_operand_record(at, (uint32_t)info->weights);
    if (o.channels == 0 || o.region != NEUTRON_REGION_WEIGHTS) return 0;
    *offset = o.offset;
    return nk_bytes(&call->operands[info->weights]);
}

static NeutronError damaged(const nd_section *s, uint32_t number, NeutronError error,
                            nd_text *detail) {
    nd_text_append(detail, "byte %u: section %u: storage %u, %u bytes of weights in %u", s->at,
                   number, s->record.storage, s->record.plain, s->record.stored);
    return error;
}

/* Are the bytes of the weights block behind section `s`, up to the next or the block's end,
 * zeros? */
static bool zeros_behind(const nd_program *program, const nd_section *s, bool last) {
    const uint32_t from = s->stored + s->record.stored, bytes = program->header.weights_bytes;
    const uint64_t next = last ? bytes : up(from, sizeof(uint32_t));
    const uint32_t to = next < bytes ? (uint32_t)next : bytes;
    for (uint32_t at = from; at < to; at++) {
        if (program->stored[at] != 0) return false;
    }
    return true;
}

NeutronError nd_check_sections(const nd_program *program, nd_text *detail) {
    const NeutronHeaderRecord *h = &program->header;
    if (h->section_count == 0) {
        if (h->sections_offset == 0 && h->plain_bytes == 0 && h->window_bytes == 0)
            return NEUTRON_NONE;
        nd_text_append(detail, "byte %u: %u bytes of no sections at byte %u",
                       (uint32_t)offsetof(NeutronHeaderRecord, sections_offset), h->plain_bytes,
                       h->sections_offset);
        return NEUTRON_ERROR_SECTION_TABLE;
    }
    if (!ND_DECODERS) {
        nd_text_append(detail, "byte %u: coded constants, and this image has no decoders",
                       h->sections_offset);
        return NEUTRON_ERROR_KERNEL_MISSING;
    }
    nd_section s = nd_no_section(program);
    for (uint32_t number = 0; number < h->section_count; number++) {
        if (!nd_next_section(program, &s) ||
            !zeros_behind(program, &s, number + 1 == h->section_count))
            return damaged(&s, number, NEUTRON_ERROR_SECTION_TABLE, detail);
    }
    const uint64_t plain = s.plain + up(s.record.plain, NEUTRON_ALIGNMENT);
    if (plain == h->plain_bytes && h->window_bytes <= plain) return NEUTRON_NONE;
    nd_text_append(detail, "byte %u: plain_bytes is %u, the sections have %llu",
                   (uint32_t)offsetof(NeutronHeaderRecord, plain_bytes), h->plain_bytes,
                   (unsigned long long)plain);
    return NEUTRON_ERROR_SECTION_TABLE;
}

NeutronError nd_decode_sections(const nd_program *program, uint8_t *to, nd_text *detail) {
    nd_section s = nd_no_section(program);
    if (to != NULL) memset(to, 0, program->header.plain_bytes);
    for (uint32_t number = 0; number < program->header.section_count; number++) {
        (void)nd_next_section(program, &s); /* checked before */
        const uint8_t *from = program->stored + s.stored;
        uint8_t *target = to ? to + s.plain : NULL;
        bool good = true;
        if (s.record.storage == NEUTRON_STORAGE_RAW) {
            if (target != NULL) memcpy(target, from, s.record.plain);
        } else if (s.record.storage == NEUTRON_STORAGE_COLUMNS) {
            good = nd_decode_columns(&s, from, 0, nd_padded_channels(&s), target);
        } else {
            good = nd_decode_weights(&s, from, 0, s.blocks, target);
        }
        if (!good) return damaged(&s, number, NEUTRON_ERROR_WEIGHTS_CODE, detail);
    }
    return NEUTRON_NONE;
}
