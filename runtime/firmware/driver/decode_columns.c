#include <string.h>

#include "storage.h"

/* What stands in front of all columns, for each: smallest value, bits of a difference to it, zero
 * bits below them. */
enum { HEAD_BYTES = 8, HEAD_BITS_AT = 4, HEAD_SHIFT_AT = 5, WORD_BITS = 32 };

/* `count` bits from bit `at` on, least significant first. */
static uint32_t bits_at(const uint8_t *bytes, uint64_t at, uint32_t count) {
    uint64_t found = 0;
    const uint64_t first = at / 8, last = (at + count + 7) / 8;
    for (uint64_t byte = first; byte < last; byte++)
        found |= (uint64_t)bytes[byte] << 8 * (byte - first);
    return (uint32_t)(found >> at % 8 & ((UINT64_C(1) << count) - 1));
}

uint32_t nd_padded_channels(const nd_section *section) {
    return section->record.plain / (uint32_t)sizeof(uint32_t) / section->record.parameter;
}

bool nd_decode_columns(const nd_section *section, const uint8_t *stored, uint32_t first,
                       uint32_t count, uint8_t *to) {
    const NeutronSectionRecord *r = &section->record;
    const uint32_t end = r->channels - first < count ? r->channels : first + count;
    uint64_t at = (uint64_t)r->parameter * HEAD_BYTES;
    if (at > r->stored) return false;
    if (to != NULL) memset(to, 0, sizeof(uint32_t) * r->parameter * count);
    for (uint32_t column = 0; column < r->parameter; column++) {
        const uint8_t *head = stored + (size_t)column * HEAD_BYTES;
        const uint32_t low = bits_at(head, 0, WORD_BITS), bits = head[HEAD_BITS_AT],
                       shift = head[HEAD_SHIFT_AT];
        if (bits + shift > WORD_BITS || shift >= WORD_BITS || head[6] || head[7]) return false;
        const uint64_t size = ((uint64_t)bits * r->channels + 7) / 8;
        if (size > r->stored - at) return false;
        for (uint32_t channel = first; to != NULL && channel < end; channel++) {
            const uint64_t place = (uint64_t)channel * bits;
            const uint32_t value = low + (bits_at(stored + at, place, bits) << shift);
            const size_t at_word = (size_t)column * count + channel - first;
            memcpy(to + at_word * sizeof value, &value, sizeof value);
        }
        at += size;
    }
    return at == r->stored;
}
