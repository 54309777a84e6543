#include "crc.h"

/* Half a byte per step: 64 bytes of table suit small and large machines. Reflected polynomial
 * 0xEDB88320. */
static const uint32_t nibbles[16] = {
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
};

uint32_t nd_crc32(uint32_t crc, const void *data, size_t size) {
    const uint8_t *bytes = data;
    crc = ~crc;
    for (size_t at = 0; at < size; at++) {
        crc ^= bytes[at];
        crc = crc >> 4 ^ nibbles[crc & 15];
        crc = crc >> 4 ^ nibbles[crc & 15];
    }
    return ~crc;
}
