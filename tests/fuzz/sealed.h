/* What the fuzz targets of the delegate share: a silent log, and payloads whose checksums are
 * right. */
#pragma once

#include <cstdlib>
#include <cstring>

#include <executorch/runtime/platform/platform.h>

#include "blocks.h"
extern "C" {
#include "crc.h"
}
#include "delegate/payload.h"

namespace fuzz {

inline void forget(et_timestamp_t, et_pal_log_level_t, const char *, const char *, size_t,
                   const char *, size_t) {}

/* Refusals are sentences in the log, thousands a second. */
inline void silence() {
    const_cast<executorch::runtime::PalImpl *>(executorch::runtime::get_pal_impl())
        ->emit_log_message = forget;
}

/* Makes the checksum of the microcode right, then that of the identity block at the end, if there
 * is one. */
inline void seal(uint8_t *data, size_t size) {
    constexpr uint32_t kIdentityMagic = 0x64494E4F; /* "ONId", as payload.cpp has it */
    if (size >= 4) {
        const size_t header = fuzz_align16(4 + 2 * (static_cast<size_t>(data[0]) + data[1]));
        if (header < size) {
            fuzz_seal(data + header, size - header);
        }
    }
    uint32_t magic = 0;
    if (size >= 16) {
        std::memcpy(&magic, data + size - 8, sizeof(magic));
    }
    if (magic == kIdentityMagic) {
        const uint32_t crc = nd_crc32(0, data, size - sizeof(crc));
        std::memcpy(data + size - sizeof(crc), &crc, sizeof(crc));
    }
}

} // namespace fuzz
