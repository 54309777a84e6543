#include <stddef.h>

#include "crc.h"
#include "model.h"

/* CRC-32 over microcode, with the checksum's own field as zeros, then weights, then kernels. */
NeutronError nd_check_checksum(const nd_program *program, nd_text *detail) {
    static const uint8_t zeros[sizeof(uint32_t)] = {0};
    const uint32_t field =
        program->header.identity_offset + (uint32_t)offsetof(NeutronIdentityRecord, checksum);
    const uint32_t after = field + (uint32_t)sizeof zeros;
    uint32_t crc = nd_crc32(0, program->microcode, field);
    crc = nd_crc32(crc, zeros, sizeof zeros);
    crc = nd_crc32(crc, program->microcode + after, program->header.microcode_bytes - after);
    crc = nd_crc32(crc, program->stored, program->header.weights_bytes);
    crc = nd_crc32(crc, program->kernels, program->header.kernels_bytes);
    if (crc == program->identity.checksum) return NEUTRON_NONE;
    nd_text_append(detail, "byte %u: the checksum is %u, the blocks give %u", field,
                   program->identity.checksum, crc);
    return NEUTRON_ERROR_CHECKSUM;
}
