#include "transpose.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace openneutron {
namespace {

/* 16 x 16 bytes fill sixteen vector registers, and 16 lines of source and target stay cached for
 * wider elements. */
constexpr size_t kBlock = 16;

template <typename T>
void block(const T *source, T *target, size_t source_pitch, size_t target_pitch, size_t rows,
           size_t columns) {
    for (size_t c = 0; c < columns; ++c) {
        for (size_t r = 0; r < rows; ++r) {
            target[c * target_pitch + r] = source[r * source_pitch + c];
        }
    }
}

#if defined(__SSE2__)
/* Four rounds of interleaving register i with register i + 8 transpose 16 x 16 bytes. */
void whole_block(const uint8_t *source, uint8_t *target, size_t source_pitch, size_t target_pitch) {
    __m128i a[kBlock], b[kBlock];
    for (size_t i = 0; i < kBlock; ++i) {
        a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(source + i * source_pitch));
    }
    for (int round = 0; round < 2; ++round) {
        for (size_t i = 0; i < kBlock / 2; ++i) {
            b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
            b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
        }
        for (size_t i = 0; i < kBlock / 2; ++i) {
            a[2 * i] = _mm_unpacklo_epi8(b[i], b[i + 8]);
            a[2 * i + 1] = _mm_unpackhi_epi8(b[i], b[i + 8]);
        }
    }
    for (size_t i = 0; i < kBlock; ++i) {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(target + i * target_pitch), a[i]);
    }
}
#else
void whole_block(const uint8_t *source, uint8_t *target, size_t source_pitch, size_t target_pitch) {
    block(source, target, source_pitch, target_pitch, kBlock, kBlock);
}
#endif

template <typename T>
void whole_block(const T *source, T *target, size_t source_pitch, size_t target_pitch) {
    block(source, target, source_pitch, target_pitch, kBlock, kBlock);
}

/* Images have three channels: a fixed small side lets the compiler unroll what blocks would handle
 * element by element. */
template <typename T, size_t kRows> void few_rows(const T *source, T *target, size_t columns) {
    for (size_t c = 0; c < columns; ++c) {
        for (size_t r = 0; r < kRows; ++r) {
            target[c * kRows + r] = source[r * columns + c];
        }
    }
}

template <typename T, size_t kColumns> void few_columns(const T *source, T *target, size_t rows) {
    for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < kColumns; ++c) {
            target[c * rows + r] = source[r * kColumns + c];
        }
    }
}

template <typename T>
void transpose_elements(const T *source, T *target, size_t rows, size_t columns) {
    switch (rows) {
    case 2: return few_rows<T, 2>(source, target, columns);
    case 3: return few_rows<T, 3>(source, target, columns);
    case 4: return few_rows<T, 4>(source, target, columns);
    default: break;
    }
    switch (columns) {
    case 2: return few_columns<T, 2>(source, target, rows);
    case 3: return few_columns<T, 3>(source, target, rows);
    case 4: return few_columns<T, 4>(source, target, rows);
    default: break;
    }
    const size_t whole_rows = rows - rows % kBlock;
    const size_t whole_columns = columns - columns % kBlock;
    for (size_t r = 0; r < whole_rows; r += kBlock) {
        for (size_t c = 0; c < whole_columns; c += kBlock) {
            whole_block(source + r * columns + c, target + c * rows + r, columns, rows);
        }
    }
    block(source + whole_columns, target + whole_columns * rows, columns, rows, whole_rows,
          columns - whole_columns);
    block(source + whole_rows * columns, target + whole_rows, columns, rows, rows - whole_rows,
          columns);
}

} // namespace

void transpose(const uint8_t *source, uint8_t *target, size_t rows, size_t columns,
               size_t element_bytes) {
    switch (element_bytes) {
    case 1: return transpose_elements(source, target, rows, columns);
    case 2:
        return transpose_elements(reinterpret_cast<const uint16_t *>(source),
                                  reinterpret_cast<uint16_t *>(target), rows, columns);
    case 4:
        return transpose_elements(reinterpret_cast<const uint32_t *>(source),
                                  reinterpret_cast<uint32_t *>(target), rows, columns);
    case 8:
        return transpose_elements(reinterpret_cast<const uint64_t *>(source),
                                  reinterpret_cast<uint64_t *>(target), rows, columns);
    default: return; /* no element has another size */
    }
}

} // namespace openneutron
