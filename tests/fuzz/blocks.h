/* What the fuzz targets share: splitting an input into blocks, making checksums right, and changing
 * it word by word. */
#ifndef FUZZ_BLOCKS_H
#define FUZZ_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define _Static_assert static_assert /* the generated header is C11 */
#endif
#include "generated/microcode.h"
#ifdef __cplusplus
#undef _Static_assert
extern "C" {
#endif
#include "crc.h"
#include "neutron.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t limit);

/* Larger sizes would only measure malloc: no kernel treats a megabyte otherwise than a kilobyte. */
enum { FUZZ_REGION_BYTES = 1 << 20 };

static inline size_t fuzz_align16(size_t size) { return (size + 15) / 16 * 16; }

/* Memory that ends where it is said to end, so that the address sanitizer sees one byte too many.
 */
static inline void *fuzz_exactly(const void *bytes, size_t size) {
    void *copy = malloc(size);
    if (copy == NULL) abort();
    if (bytes != NULL && size != 0) memcpy(copy, bytes, size);
    if (bytes == NULL) memset(copy, 0x5A, size);
    return copy;
}

/* Where the three blocks start in an input that begins with microcode, and how much of each is
 * really there. */
typedef struct {
    size_t microcode, weights_at, weights, kernels_at, kernels;
} fuzz_blocks;

static inline size_t fuzz_least(size_t a, size_t b) { return a < b ? a : b; }

static inline fuzz_blocks fuzz_split(const uint8_t *data, size_t size) {
    NeutronHeaderRecord header;
    fuzz_blocks found = {size, size, 0, size, 0};
    if (size < sizeof header) return found;
    memcpy(&header, data, sizeof header);
    found.microcode = fuzz_least(header.microcode_bytes, size);
    found.weights_at = fuzz_least(fuzz_align16(found.microcode), size);
    found.weights = fuzz_least(header.weights_bytes, size - found.weights_at);
    found.kernels_at = fuzz_least(found.weights_at + fuzz_align16(found.weights), size);
    found.kernels = fuzz_least(header.kernels_bytes, size - found.kernels_at);
    return found;
}

/* Make the microcode's checksum right for whatever the header now says; leave it where that is out
 * of range. Without this every change would end at the checksum and prove nothing. */
static inline void fuzz_seal(uint8_t *data, size_t size) {
    NeutronHeaderRecord header;
    const fuzz_blocks at = fuzz_split(data, size);
    if (at.microcode < sizeof header) return;
    memcpy(&header, data, sizeof header);
    const uint64_t field =
        (uint64_t)header.identity_offset + offsetof(NeutronIdentityRecord, checksum);
    if (field + sizeof(uint32_t) > at.microcode) return;
    memset(data + field, 0, sizeof(uint32_t));
    uint32_t crc = nd_crc32(0, data, at.microcode);
    crc = nd_crc32(crc, data + at.weights_at, at.weights);
    crc = nd_crc32(crc, data + at.kernels_at, at.kernels);
    memcpy(data + field, &crc, sizeof crc);
}

static inline uint32_t fuzz_random(uint32_t *state) { /* xorshift32 */
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static inline uint32_t fuzz_changed(uint32_t word, uint32_t other, uint32_t *state) {
    static const uint32_t edges[] = {
        0,   1,      2,      7,      8,       15,         16,         127,        128,       255,
        256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF};
    const uint32_t chance = fuzz_random(state);
    switch (chance % 6) {
    case 0: return edges[(chance >> 8) % (sizeof edges / sizeof edges[0])];
    case 1: return word + 1 + (chance >> 8) % 8;
    case 2: return word - 1 - (chance >> 8) % 8;
    case 3: return word ^ (uint32_t)1 << (chance >> 8) % 32;
    case 4: return other;
    default:
        return (word & ~((uint32_t)0xFF << (chance >> 8) % 4 * 8)) | (chance >> 16 & 0xFF)
                                                                         << (chance >> 8) % 4 * 8;
    }
}

/* Everything in these formats is a word: three changes of four are of whole words, the rest
 * libFuzzer's own. */
static inline size_t fuzz_mutate(uint8_t *data, size_t size, size_t limit, unsigned seed) {
    uint32_t state =
        seed * 2654435761u | 1; /* Knuth's multiplicative hash; xorshift must not start at 0 */
    if (size < sizeof(uint32_t) || fuzz_random(&state) % 4 == 0)
        return LLVMFuzzerMutate(data, size, limit);
    const size_t words = size / sizeof(uint32_t);
    for (uint32_t changes = 1 + fuzz_random(&state) % 4; changes; changes--) {
        uint32_t word, other;
        uint8_t *at = data + fuzz_random(&state) % words * sizeof word;
        memcpy(&word, at, sizeof word);
        memcpy(&other, data + fuzz_random(&state) % words * sizeof other, sizeof other);
        word = fuzz_changed(word, other, &state);
        memcpy(at, &word, sizeof word);
    }
    return size;
}

#ifdef __cplusplus
}
#endif
#endif
