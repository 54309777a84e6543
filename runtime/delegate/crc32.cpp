#include "crc32.h"

#include <array>
#include <cstring>

namespace openneutron {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320; /* reflected 0x04C11DB7 */
constexpr size_t kSlices =
    8; /* bytes per step: a model of megabytes is checked each time it is loaded */

using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

constexpr Tables make_tables() {
    Tables tables{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value >> 1) ^ ((value & 1) ? kPolynomial : 0);
        }
        tables[0][byte] = value;
    }
    for (size_t slice = 1; slice < kSlices; ++slice) {
        for (size_t byte = 0; byte < 256; ++byte) {
            const uint32_t before = tables[slice - 1][byte];
            tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xFF];
        }
    }
    return tables;
}

constexpr Tables kTables = make_tables();

} // namespace

uint32_t crc32(const uint8_t *data, size_t size) {
    uint32_t crc = 0xFFFFFFFF;
    for (; size >= kSlices; size -= kSlices, data += kSlices) {
        uint32_t low, high;
        std::memcpy(&low, data, 4);
        std::memcpy(&high, data + 4, 4);
        low ^= crc;
        crc = kTables[7][low & 0xFF] ^ kTables[6][(low >> 8) & 0xFF] ^
              kTables[5][(low >> 16) & 0xFF] ^ kTables[4][low >> 24] ^ kTables[3][high & 0xFF] ^
              kTables[2][(high >> 8) & 0xFF] ^ kTables[1][(high >> 16) & 0xFF] ^
              kTables[0][high >> 24];
    }
    for (; size > 0; --size, ++data) {
        crc = (crc >> 8) ^ kTables[0][(crc ^ *data) & 0xFF];
    }
    return ~crc;
}

} // namespace openneutron
