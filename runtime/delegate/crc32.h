/* CRC-32 of IEEE 802.3, as zlib computes it. */
#pragma once

#include <cstddef>
#include <cstdint>

namespace openneutron {

uint32_t crc32(const uint8_t *data, size_t size);

} // namespace openneutron
