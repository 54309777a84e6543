/* The payload of one delegate: header | microcode | weights | kernels, each padded to 16 bytes,
 * then the identity block.
 *
 * src/openneutron/microcode/payload.py writes it and describes the identity block.
 */
#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/error.h>

namespace openneutron {

struct Block {
    const uint8_t *data;
    size_t size;
};

/* Views into the payload, without ownership. */
struct Payload {
    uint8_t inputs, outputs;
    uint8_t input_args; /* output k is argument input_args + output_map[k] */
    uint8_t version;    /* 1: profiling */
    const uint8_t *input_formats;
    const uint8_t *output_formats;
    const uint8_t *input_map;
    const uint8_t *output_map;
    Block microcode, weights, kernels;
    uint32_t scratch_bytes, prefetch_bytes;
};

constexpr uint8_t kChannelsLast = 1;

/* Weights that are stored apart from their payload, which says where they belong. */
struct Apart {
    char key[49];   /* of the program's named data, "" where the payload is whole */
    size_t at;      /* byte of the payload */
    size_t size;    /* of the weights: the first bytes of the named data */
    size_t payload; /* bytes of the payload without them */
    const uint8_t *data;
};

/* Reads what a payload says about weights that are stored apart; `data` is for the caller to set.
 * src/openneutron/microcode/shared_weights.py writes it. */
executorch::runtime::Error find_apart(const uint8_t *data, size_t size, Apart &apart);

/* Reads and checks a payload, 16-byte aligned. What is wrong is logged with its byte offset; a
 * payload that is whole but meant for something else (NXP's silicon, another format version) gives
 * DelegateInvalidCompatibility, a damaged one InvalidProgram.
 */
executorch::runtime::Error parse_payload(const uint8_t *data, const Apart &apart, Payload &payload);

} // namespace openneutron
