#include <string.h>

#include "storage.h"

/* Weights of one block, one by one. */
typedef struct {
    const nd_code *code; /* NULL: Rice codes of `low` bits, or plain bytes */
    nd_bits bits;
    uint32_t low;
    uint32_t zeros, digit;  /* what is left of a run, and the place of its next digit */
    const uint8_t *factors; /* [taps][groups of inputs][channels], 4 bits each; NULL: all are 1 */
    bool plain, damaged;
} source;

enum { MAX_QUOTIENT = 15, MAX_DIGIT = 28 };

/* Groups of inputs that share a factor. */
static uint32_t input_groups(const NeutronSectionRecord *r) {
    return ((r->inputs - 1) >> r->parameter) + 1;
}

static int32_t factor_at(const source *s, size_t place) {
    return s->factors == NULL ? 1 : (s->factors[place / 2] >> (place & 1 ? 0 : 4) & 15) + 1;
}

static int8_t rice(source *s) {
    uint32_t quotient = 0;
    while (quotient <= MAX_QUOTIENT && nd_take(&s->bits, 1)) quotient++;
    const uint32_t value = quotient << s->low | (s->low ? nd_take(&s->bits, s->low) : 0);
    s->damaged |= quotient > MAX_QUOTIENT || value > 255;
    return (int8_t)(value & 1 ? -(int32_t)(value / 2) - 1 : (int32_t)(value / 2));
}

static int8_t coded(source *s) {
    if (s->zeros) {
        s->zeros--;
        return 0;
    }
    const uint32_t symbol = nd_symbol(s->code, &s->bits);
    if (symbol == ND_NO_SYMBOL || s->digit > MAX_DIGIT) {
        s->damaged = true;
        return 0;
    }
    if (symbol < 2) {
        s->zeros = ((symbol + 1) << s->digit++) - 1;
        return 0;
    }
    s->digit = 0;
    return (int8_t)(symbol & 1 ? -(int32_t)(symbol / 2) : (int32_t)(symbol / 2));
}

static inline int8_t next_weight(source *s) {
    if (s->code != NULL) return coded(s);
    return s->plain ? (int8_t)nd_take(&s->bits, 8) : rice(s);
}

/* One block: [taps][inputs/N][M][N], padding left as it is. */
static bool decode_block(const nd_section *section, source *s, uint32_t channels, uint8_t *to) {
    const NeutronSectionRecord *r = &section->record;
    const uint32_t step = section->units * section->length;
    size_t place = 0;
    for (uint32_t tap = 0; tap < r->taps && !s->damaged; tap++) {
        for (uint32_t first = 0; first < r->inputs; first += section->length, place += step) {
            const uint32_t left = r->inputs - first;
            const uint32_t count = left < section->length ? left : section->length;
            const size_t group = (size_t)tap * input_groups(r) + (first >> r->parameter);
            for (uint32_t m = 0; m < channels; m++) {
                const size_t row = place + (size_t)m * section->length;
                const int32_t factor = factor_at(s, group * channels + m);
                for (uint32_t n = 0; n < count; n++) {
                    const int32_t weight = next_weight(s) * factor;
                    s->damaged |= weight < INT8_MIN || weight > INT8_MAX;
                    if (to != NULL) to[row + n] = (uint8_t)weight;
                }
            }
            if (s->damaged) return false;
        }
    }
    return s->zeros == 0 && nd_bits_end(&s->bits);
}

static uint32_t stream_bytes(const uint8_t *index, uint32_t width, uint32_t block) {
    uint32_t size = 0;
    for (uint32_t byte = 0; byte < width; byte++)
        size |= (uint32_t)index[(size_t)block * width + byte] << 8 * byte;
    return size;
}

bool nd_decode_weights(const nd_section *section, const uint8_t *stored, uint32_t first,
                       uint32_t count, uint8_t *to) {
    const NeutronSectionRecord *r = &section->record;
    const uint8_t *at = stored, *end = stored + r->stored;
    const uint32_t per_group = section->blocks / r->groups;
    const bool grouped = r->storage == NEUTRON_STORAGE_GROUPS;
    const bool coded_by_lengths = grouped || r->storage == NEUTRON_STORAGE_STATIC;
    nd_code code;
    if (coded_by_lengths && !nd_read_code(&code, &at, end)) return false;
    const uint8_t *index = at;
    const uint64_t index_bytes = (uint64_t)section->blocks * r->width;
    if (index_bytes > (uint64_t)(end - at)) return false;
    at += index_bytes;
    if (to != NULL) memset(to, 0, (size_t)section->block_bytes * count);
    for (uint32_t block = 0; block < section->blocks; block++) {
        const uint32_t done = block % per_group * section->units;
        const uint32_t left = r->channels - done;
        const uint32_t channels = left < section->units ? left : section->units;
        const uint64_t size = r->width ? stream_bytes(index, r->width, block)
                                       : (uint64_t)channels * r->taps * r->inputs;
        if (size > (uint64_t)(end - at)) return false;
        if (block - first < count) {
            const uint64_t factors = grouped ? (uint64_t)channels * r->taps * input_groups(r) : 0;
            const uint64_t head = (factors + 1) / 2;
            if (head > size || (factors % 2 && (at[head - 1] & 15))) return false;
            source s = {.code = coded_by_lengths ? &code : NULL,
                        .bits = nd_bits_of(at + head, at + size),
                        .factors = grouped ? at : NULL,
                        .low = r->parameter,
                        .plain = r->storage == NEUTRON_STORAGE_PACKED};
            uint8_t *target = to ? to + (size_t)section->block_bytes * (block - first) : NULL;
            if (!decode_block(section, &s, channels, target)) return false;
        }
        at += size;
    }
    return at == end;
}
