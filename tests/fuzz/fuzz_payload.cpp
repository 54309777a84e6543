/* Fuzz target: the delegate's parser of payloads. What it accepts must lie inside the payload. */
#include "sealed.h"

namespace {

void require_inside(const openneutron::Block &block, const uint8_t *data, size_t size) {
    if (block.data < data || block.size > size ||
        static_cast<size_t>(block.data - data) > size - block.size) {
        std::abort();
    }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
    fuzz::silence();
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t limit, unsigned seed) {
    return fuzz_mutate(data, size, limit, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    uint8_t *data = static_cast<uint8_t *>(fuzz_exactly(input, size));
    fuzz::seal(data, size);
    openneutron::Payload payload;
    openneutron::Apart apart;
    bool good = openneutron::find_apart(data, size, apart) == executorch::runtime::Error::Ok;
    if (good && apart.key[0] != '\0') { /* any bytes will do for weights that are elsewhere */
        apart.data = data;
        good = apart.size <= size;
    }
    if (good &&
        openneutron::parse_payload(data, apart, payload) == executorch::runtime::Error::Ok) {
        require_inside(payload.microcode, data, size);
        require_inside(payload.weights, data, size);
        require_inside(payload.kernels, data, size);
        require_inside({payload.input_formats, 2u * payload.inputs + 2u * payload.outputs}, data,
                       size);
        for (size_t at = 0; at < payload.inputs; ++at) {
            if (payload.input_map[at] >= payload.input_args) {
                std::abort();
            }
        }
    }
    std::free(data);
    return 0;
}
