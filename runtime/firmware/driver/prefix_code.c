#include <string.h>

#include "storage.h"

/* Bits of the number of symbols, of a length that is spelt out, and the length that the first one
 * is compared with. */
enum { COUNT_BITS = 9, LITERAL_BITS = 4, START = 8, UNUSED = 256 };

/* One length after `last`: '0' the same, '10' one more, '110' one less, '1110' none, '1111' and its
 * own bits anything else. */
static uint32_t next_length(nd_bits *bits, uint32_t *last) {
    uint32_t ones = 0;
    while (ones < 4 && nd_take(bits, 1)) ones++;
    switch (ones) {
    case 1: ++*last; break;
    case 2: --*last; break;
    case 4: *last = nd_take(bits, LITERAL_BITS); break;
    default: break;
    }
    return ones == 3 ? 0 : *last;
}

static bool read_lengths(uint8_t *lengths, const uint8_t **from, const uint8_t *end) {
    nd_bits bits = nd_bits_of(*from, end);
    const uint32_t count = nd_take(&bits, COUNT_BITS);
    uint32_t last = START;
    memset(lengths, 0, ND_SYMBOLS);
    if (count > ND_SYMBOLS) return false;
    for (uint32_t symbol = 0; symbol < count; symbol++) {
        lengths[symbol] = (uint8_t)next_length(&bits, &last);
        if (last < 1 || last > ND_CODE_BITS) return false;
    }
    *from = bits.next - bits.count / 8; /* whole bytes that were peeked at and not taken */
    return bits.missing == 0 && lengths[UNUSED] == 0;
}

bool nd_read_code(nd_code *code, const uint8_t **from, const uint8_t *end) {
    uint8_t lengths[ND_SYMBOLS];
    uint32_t next = 0, placed = 0;
    memset(code, 0, sizeof *code);
    if (!read_lengths(lengths, from, end)) return false;
    for (uint32_t length = 1; length <= ND_CODE_BITS; length++, next <<= 1) {
        code->first[length] = (uint16_t)next;
        for (uint32_t symbol = 0; symbol < ND_SYMBOLS; symbol++) {
            if (lengths[symbol] != length) continue;
            if (next >> length) return false; /* more codes than bits can tell apart */
            code->symbols[placed++] = (uint16_t)symbol;
            code->count[length]++;
            if (length <= ND_QUICK_BITS) {
                const uint32_t free = ND_QUICK_BITS - length, start = next << free;
                for (uint32_t at = 0; at < UINT32_C(1) << free; at++)
                    code->quick[start + at] = (uint16_t)(symbol << 4 | length);
            }
            next++;
        }
    }
    return true;
}
