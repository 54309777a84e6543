#include "payload.h"

#include <cstring>

#include <executorch/runtime/platform/log.h>

#include "message.h"

extern "C" {
#include "crc.h"
}

#define _Static_assert static_assert /* the generated header is C11 */
#include "generated/microcode.h"
#undef _Static_assert

namespace openneutron {
namespace {

using executorch::runtime::Error;

constexpr uint32_t kIdentityMagic = 0x64494E4F; /* "ONId" in the file */
constexpr uint32_t kIdentityVersion = 1;
constexpr uint32_t kOpenFamily =
    NEUTRON_VERSION_WORD >> 16; /* "ON": open microcode of whatever format version */

struct Identity {
    char converter[16];
    char converter_version[32];
    char target[16];
    uint32_t microcode, weights, kernels,
        tensors; /* a u32 of bytes per tensor follows, padded to 16 */
};
static_assert(sizeof(Identity) == 80, "as payload.py packs it");

struct Footer {
    uint32_t block_bytes, version, magic,
        crc; /* the CRC covers every byte of the payload before it */
};
static_assert(sizeof(Footer) == 16, "as payload.py packs it");

constexpr uint32_t kApartMagic = 0x77534E4F; /* "ONSw" in the file */
constexpr uint32_t kApartVersion = 1;

struct Trailer {
    char key[48];
    uint32_t at, size, version, magic;
};
static_assert(sizeof(Trailer) == 64, "as shared_weights.py packs it");

size_t align16(size_t size) { return (size + 15) & ~static_cast<size_t>(15); }

/* A block of the payload, or an error that names where it would start. */
Error take(const uint8_t *data, size_t size, size_t offset, size_t length, const char *what,
           Block &block) {
    ON_REQUIRE(offset <= size && length <= size - offset, InvalidProgram,
               "%s of %zu bytes at byte %zu leaves the payload of %zu bytes", what, length, offset,
               size);
    block = {data + offset, length};
    return Error::Ok;
}

Error parse_header(const uint8_t *data, size_t size, Payload &payload, size_t &length) {
    ON_REQUIRE(size >= 4, InvalidProgram, "the payload of %zu bytes has no header", size);
    payload.inputs = data[0];
    payload.outputs = data[1];
    payload.input_args = data[2];
    const size_t tensors = static_cast<size_t>(payload.inputs) + payload.outputs;
    length = 4 + 2 * tensors;
    ON_REQUIRE(size >= length, InvalidProgram,
               "the payload of %zu bytes ends inside its header of %zu", size, length);
    payload.input_formats = data + 3;
    payload.output_formats = payload.input_formats + payload.inputs;
    payload.input_map = payload.output_formats + payload.outputs;
    payload.output_map = payload.input_map + payload.inputs;
    payload.version = data[length - 1];
    for (size_t i = 0; i < tensors; ++i) {
        ON_REQUIRE(data[3 + i] <= kChannelsLast, InvalidProgram,
                   "tensor format %u at byte %zu is unknown", data[3 + i], 3 + i);
    }
    for (size_t i = 0; i < payload.inputs; ++i) {
        ON_REQUIRE(payload.input_map[i] < payload.input_args, InvalidProgram,
                   "input %zu is argument %u of only %u", i, payload.input_map[i],
                   payload.input_args);
    }
    ON_REQUIRE(payload.version <= 1, DelegateInvalidCompatibility,
               "payload version %u is unknown; 0 and 1 (profiling) are known", payload.version);
    return Error::Ok;
}

/* Open microcode of our format version goes on; every other is refused by name. */
Error check_maker(uint32_t version_word) {
    if (version_word == NEUTRON_VERSION_WORD) {
        return Error::Ok;
    }
    if (version_word >> 16 == kOpenFamily) {
        ON_LOG("open microcode of format version %u; this runtime knows version %u: export the "
               "model again",
               version_word & 0xFFFF, NEUTRON_FORMAT_VERSION);
    } else {
        ON_LOG("the payload was made by NXP's converter: it runs on NXP silicon, not in the "
               "simulator");
    }
    return Error::DelegateInvalidCompatibility;
}

/* The checksum of the payload without its last word, with weights that are stored apart. */
uint32_t checksum(const uint8_t *data, const Apart &apart) {
    const size_t end = apart.payload - sizeof(uint32_t);
    if (apart.key[0] == '\0') {
        return nd_crc32(0, data, end);
    }
    static const uint8_t zeros[16] = {};
    uint32_t crc = nd_crc32(0, data, apart.at);
    crc = nd_crc32(crc, apart.data, apart.size);
    crc = nd_crc32(crc, zeros, align16(apart.size) - apart.size);
    return nd_crc32(crc, data + apart.at, end - apart.at);
}

Error check_identity(const uint8_t *data, const Apart &apart, const Payload &payload,
                     size_t blocks_end) {
    const size_t size = apart.payload;
    Footer footer;
    if (size < sizeof(footer)) {
        return Error::Ok;
    }
    std::memcpy(&footer, data + size - sizeof(footer), sizeof(footer));
    if (footer.magic != kIdentityMagic) {
        return Error::Ok; /* written by a stock tool: the microcode's own checksum still protects it
                           */
    }
    ON_REQUIRE(checksum(data, apart) == footer.crc, InvalidProgram,
               "the payload's checksum is wrong: it was changed after it was written; export the "
               "model again");
    ON_REQUIRE(
        footer.version == kIdentityVersion, DelegateInvalidCompatibility,
        "identity block of version %u; this runtime knows version %u: export the model again",
        footer.version, kIdentityVersion);
    Identity identity;
    ON_REQUIRE(footer.block_bytes >= sizeof(identity) + sizeof(footer) &&
                   footer.block_bytes <= size && size - footer.block_bytes == blocks_end,
               InvalidProgram,
               "identity block of %u bytes behind blocks that end at byte %zu of %zu",
               footer.block_bytes, blocks_end, size);
    std::memcpy(&identity, data + blocks_end, sizeof(identity));
    ON_REQUIRE(
        identity.microcode == payload.microcode.size && identity.weights == payload.weights.size &&
            identity.kernels == payload.kernels.size &&
            identity.tensors == static_cast<uint32_t>(payload.inputs) + payload.outputs &&
            sizeof(identity) + align16(4 * static_cast<size_t>(identity.tensors)) +
                    sizeof(footer) ==
                footer.block_bytes,
        InvalidProgram,
        "the identity block at byte %zu describes other blocks than the payload holds", blocks_end);
    NeutronIdentityRecord inner;
    const NeutronHeaderRecord *header =
        reinterpret_cast<const NeutronHeaderRecord *>(payload.microcode.data);
    ON_REQUIRE(header->identity_offset <= payload.microcode.size &&
                   sizeof(inner) <= payload.microcode.size - header->identity_offset,
               InvalidProgram, "identity record at byte %u leaves the microcode of %zu bytes",
               header->identity_offset, payload.microcode.size);
    std::memcpy(&inner, payload.microcode.data + header->identity_offset, sizeof(inner));
    ON_REQUIRE(std::strncmp(identity.target, reinterpret_cast<const char *>(inner.target),
                            sizeof(inner.target)) == 0,
               DelegateInvalidCompatibility,
               "the payload was made for %.16s, its microcode for %.16s", identity.target,
               reinterpret_cast<const char *>(inner.target));
    return Error::Ok;
}

} // namespace

Error find_apart(const uint8_t *data, size_t size, Apart &apart) {
    apart = {};
    apart.payload = size;
    Trailer trailer;
    if (size < sizeof(trailer)) {
        return Error::Ok;
    }
    std::memcpy(&trailer, data + size - sizeof(trailer), sizeof(trailer));
    if (trailer.magic != kApartMagic) {
        return Error::Ok;
    }
    apart.payload = size - sizeof(trailer);
    ON_REQUIRE(trailer.version == kApartVersion, DelegateInvalidCompatibility,
               "weights of version %u are stored apart; this runtime knows version %u: export the "
               "model again",
               trailer.version, kApartVersion);
    ON_REQUIRE(trailer.key[0] != '\0' && trailer.at <= apart.payload &&
                   apart.payload >= sizeof(uint32_t) &&
                   trailer.at <= apart.payload - sizeof(uint32_t),
               InvalidProgram, "weights stored apart belong to byte %u of a payload of %zu",
               trailer.at, apart.payload);
    std::memcpy(apart.key, trailer.key, sizeof(trailer.key));
    apart.at = trailer.at;
    apart.size = trailer.size;
    return Error::Ok;
}

Error parse_payload(const uint8_t *data, const Apart &apart, Payload &payload) {
    const size_t size = apart.payload;
    size_t header_bytes = 0;
    ON_TRY(parse_header(data, size, payload, header_bytes));
    const size_t code = align16(header_bytes);
    Block first;
    ON_TRY(take(data, size, code, 2 * sizeof(uint32_t), "the microcode", first));
    const NeutronHeaderRecord *header = reinterpret_cast<const NeutronHeaderRecord *>(first.data);
    ON_REQUIRE(header->magic == NEUTRON_MAGIC, InvalidProgram,
               "microcode at byte %zu starts with 0x%08x instead of 0x%08x", code, header->magic,
               NEUTRON_MAGIC);
    ON_TRY(check_maker(header->version));
    ON_TRY(take(data, size, code, sizeof(*header), "the microcode's header", first));
    ON_TRY(take(data, size, code, header->microcode_bytes, "the microcode", payload.microcode));
    ON_REQUIRE(payload.microcode.size >= sizeof(*header), InvalidProgram,
               "microcode of %zu bytes is shorter than its header", payload.microcode.size);
    const size_t weights = code + align16(header->microcode_bytes);
    const bool is_apart = apart.key[0] != '\0';
    if (is_apart) {
        ON_REQUIRE(apart.at == weights && apart.size == header->weights_bytes, InvalidProgram,
                   "%zu bytes of weights stored apart belong to byte %zu, the microcode has %u for "
                   "byte %zu",
                   apart.size, apart.at, header->weights_bytes, weights);
        payload.weights = {apart.data, apart.size};
    } else {
        ON_TRY(take(data, size, weights, header->weights_bytes, "the weights", payload.weights));
    }
    const size_t kernels = is_apart ? weights : weights + align16(header->weights_bytes);
    ON_TRY(take(data, size, kernels, header->kernels_bytes, "the kernels", payload.kernels));
    const bool profiling = (header->flags & NEUTRON_FLAG_PROFILING) != 0;
    ON_REQUIRE(profiling == (payload.version == 1), InvalidProgram,
               "microcode flags 0x%x contradict payload version %u", header->flags,
               payload.version);
    payload.scratch_bytes = header->layout[0];
    payload.prefetch_bytes = header->layout[profiling ? 3 : 1];
    return check_identity(data, apart, payload, kernels + align16(header->kernels_bytes));
}

} // namespace openneutron
