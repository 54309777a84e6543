/* Matrix transposition in blocks that stay in the first-level cache. */
#pragma once

#include <cstddef>
#include <cstdint>

namespace openneutron {

/* target[c][r] = source[r][c]; elements of 1, 2, 4 or 8 bytes; the buffers do not overlap. */
void transpose(const uint8_t *source, uint8_t *target, size_t rows, size_t columns,
               size_t element_bytes);

} // namespace openneutron
