#include "storage.h"

/* Bytes stored of a word, by its class. */
static const uint8_t sizes[] = {0, 1, 2, 4};

bool nd_unpack_words(const uint8_t *bytes, uint32_t *at, uint32_t end, uint32_t *words,
                     uint32_t count) {
    uint32_t from = *at, classes = 0;
    for (uint32_t word = 0; word < count; word++, classes >>= 2) {
        if (word % 4 == 0) {
            if (from >= end) return false;
            classes = bytes[from++];
        }
        const uint32_t size = sizes[classes & 3];
        uint32_t value = 0;
        if (size > end - from) return false;
        if (size > 0) value = bytes[from];
        if (size > 1) value |= (uint32_t)bytes[from + 1] << 8;
        if (size > 2) value |= (uint32_t)bytes[from + 2] << 16 | (uint32_t)bytes[from + 3] << 24;
        if (size == 1) value = (uint32_t)(int8_t)value;
        if (size == 2) value = (uint32_t)(int16_t)value;
        words[word] = value;
        from += size;
    }
    *at = from;
    return true;
}
