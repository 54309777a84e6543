#ifndef ND_CRC_H
#define ND_CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 (IEEE 802.3) of `data` continued from `crc`; start with 0. */
uint32_t nd_crc32(uint32_t crc, const void *data, size_t size);

#endif
