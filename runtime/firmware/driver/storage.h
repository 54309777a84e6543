/* Decoders of stored constants and instructions (docs/storage.md). */
#ifndef ND_STORAGE_H
#define ND_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "generated/microcode.h"

/* unpack_words.c: `count` packed words from `*at` on, which moves behind them; false where they
 * would leave the bytes before `end`. */
bool nd_unpack_words(const uint8_t *bytes, uint32_t *at, uint32_t end, uint32_t *words,
                     uint32_t count);

/* bits.c: a stream of bits, most significant first. Behind its end it goes on with zeros, which
 * nd_bits_end tells. */
typedef struct {
    const uint8_t *next, *end;
    uint32_t value, count; /* the low `count` bits of `value` are still to be read */
    uint32_t missing;      /* bytes read behind the end */
} nd_bits;

static inline nd_bits nd_bits_of(const uint8_t *from, const uint8_t *end) {
    return (nd_bits){from, end, 0, 0, 0};
}

/* Return the next `count` bits, 24 at most, without consuming them. */
static inline uint32_t nd_peek(nd_bits *bits, uint32_t count) {
    while (bits->count < count) {
        const bool there = bits->next < bits->end;
        bits->value = bits->value << 8 | (there ? *bits->next : 0u);
        bits->next += there;
        bits->missing += !there;
        bits->count += 8;
    }
    return bits->value >> (bits->count - count) & ((UINT32_C(1) << count) - 1);
}

/* Consume bits that were peeked at. */
static inline void nd_skip(nd_bits *bits, uint32_t count) { bits->count -= count; }

static inline uint32_t nd_take(nd_bits *bits, uint32_t count) {
    const uint32_t found = nd_peek(bits, count);
    nd_skip(bits, count);
    return found;
}

/* True where all bytes were read and none behind them; the rest of the last one is zeros. */
static inline bool nd_bits_end(const nd_bits *bits) {
    const uint32_t behind = 8 * bits->missing;
    return bits->next == bits->end && bits->count >= behind && bits->count - behind < 8 &&
           (bits->value & ((UINT32_C(1) << bits->count) - 1)) == 0;
}

/* prefix_code.c: the static code of one section. */
enum { ND_SYMBOLS = 258, ND_CODE_BITS = 15, ND_QUICK_BITS = 8, ND_NO_SYMBOL = 0xFFFF };

typedef struct {
    uint16_t first[ND_CODE_BITS + 1], count[ND_CODE_BITS + 1]; /* codes of each length */
    uint16_t quick[1 << ND_QUICK_BITS]; /* symbol << 4 | length by the next bits; 0: it is longer */
    uint16_t symbols[ND_SYMBOLS];       /* by length, then by number */
} nd_code;

/* Read the lengths at `*from`, which moves behind them; false where they make no prefix code. */
bool nd_read_code(nd_code *code, const uint8_t **from, const uint8_t *end);

/* Return the next symbol, or ND_NO_SYMBOL. */
static inline uint32_t nd_symbol(const nd_code *code, nd_bits *bits) {
    const uint32_t seen = nd_peek(bits, ND_CODE_BITS);
    const uint32_t quick = code->quick[seen >> (ND_CODE_BITS - ND_QUICK_BITS)];
    if (quick) {
        nd_skip(bits, quick & 15);
        return quick >> 4;
    }
    uint32_t before = 0;
    for (uint32_t length = 1; length <= ND_CODE_BITS; length++) {
        const uint32_t place = (seen >> (ND_CODE_BITS - length)) - code->first[length];
        if (place < code->count[length]) {
            nd_skip(bits, length);
            return code->symbols[before + place];
        }
        before += code->count[length];
    }
    return ND_NO_SYMBOL;
}

/* One section and its position. */
typedef struct {
    uint32_t number;        /* of sections up to this one; 0: it stands before the first */
    uint32_t at;            /* byte of its record in the microcode */
    uint32_t next;          /* byte behind it */
    uint32_t stored, plain; /* byte in the weights block and in region WEIGHTS */
    uint32_t units, length; /* blocks that its weights are padded to */
    uint32_t blocks;        /* of `units` output channels, of all groups */
    uint32_t block_bytes;   /* of one of them, decoded */
    NeutronSectionRecord record;
} nd_section;

/* decode_weights.c, decode_columns.c: plain bytes of blocks [first, first + count) of a section of
 * weights; the columns of channels [first, first + count) of a table, those without a value zeros.
 * `to` NULL checks what is stored and writes nothing. False where it is damaged; then `to` may hold
 * anything. */
bool nd_decode_weights(const nd_section *section, const uint8_t *stored, uint32_t first,
                       uint32_t count, uint8_t *to);
bool nd_decode_columns(const nd_section *section, const uint8_t *stored, uint32_t first,
                       uint32_t count, uint8_t *to);
/* Channels of a table, with their padding. */
uint32_t nd_padded_channels(const nd_section *section);

#endif
