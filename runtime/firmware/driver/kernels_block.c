#include <string.h>

#include "model.h"

/* Neutron-S hands its controller a list: u32 count, then that many u16 kernel ids in rising order,
 * then zeros to fill a multiple of 16 bytes at most. Neutron-C only needs the block not to be
 * empty. */
NeutronError nd_check_kernels_block(const nd_program *program, const uint32_t *called,
                                    nd_text *detail) {
    const uint32_t size = program->header.kernels_bytes;
    uint32_t count = 0;
    if (size == 0) {
        nd_text_append(detail, "the kernels block is empty");
        return NEUTRON_ERROR_KERNELS_BLOCK;
    }
    if (!program->target->subsystem) return NEUTRON_NONE;
    if (size >= sizeof count) memcpy(&count, program->kernels, sizeof count);
    const uint64_t used = sizeof count + (uint64_t)count * sizeof(uint16_t);
    if (size < sizeof count || used > size || size - used >= NEUTRON_ALIGNMENT) {
        nd_text_append(detail, "the kernels block of %u bytes lists %u kernels", size, count);
        return NEUTRON_ERROR_KERNELS_BLOCK;
    }
    uint32_t at = 0;
    for (uint32_t kernel = 0; kernel < NEUTRON_KERNEL_LIMIT; kernel++) {
        if (!(called[kernel / 32] >> kernel % 32 & 1)) continue;
        uint16_t listed = 0;
        if (at < count)
            memcpy(&listed, program->kernels + sizeof count + at * sizeof listed, sizeof listed);
        if (listed != kernel) {
            nd_text_append(detail, "entry %u of the kernels block is %u, the code calls kernel %u",
                           at, listed, kernel);
            return NEUTRON_ERROR_KERNELS_BLOCK;
        }
        at++;
    }
    if (at != count) {
        nd_text_append(detail, "the kernels block lists %u kernels, the code calls %u", count, at);
        return NEUTRON_ERROR_KERNELS_BLOCK;
    }
    for (uint64_t tail = used; tail < size; tail++) {
        if (program->kernels[tail]) {
            nd_text_append(detail, "byte %llu of the kernels block is not zero",
                           (unsigned long long)tail);
            return NEUTRON_ERROR_KERNELS_BLOCK;
        }
    }
    return NEUTRON_NONE;
}
