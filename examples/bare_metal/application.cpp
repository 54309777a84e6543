// A model in a C++ application without heap, exceptions and operating system: its memory is an
// object. `model.c` and `model.h` are what `openneutron extract-payload model.pte -o model.c
// --random-inputs 0` writes.
#include <stdint.h>

#include "model.h"
#include "semihost.h"

namespace {

// One handle; several may run the model at the same time. It stays where it is.
class Model {
  public:
    Model() = default;
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;

    int32_t init() { return model_init(arena_, sizeof arena_); }

    int32_t run(const void *const *inputs, void *const *outputs) {
        return model_run(arena_, inputs, outputs);
    }

  private:
    alignas(16) uint8_t arena_[MODEL_ARENA_BYTES];
};

constexpr uint32_t output_bytes[] = MODEL_OUTPUT_BYTES;

Model model;
alignas(16) uint8_t results[MODEL_IO_BYTES];

} // namespace

int main() {
    void *outputs[MODEL_OUTPUTS];
    uint32_t used = 0;
    for (uint32_t at = 0; at < MODEL_OUTPUTS; at++) {
        outputs[at] = results + used;
        used += (output_bytes[at] + 15u) / 16u * 16u;
    }
    if (model.init() != 0 || model.run(model_inputs, outputs) != 0) return 1;
    for (uint32_t at = 0; at < MODEL_OUTPUTS; at++) {
        put_text("output ");
        put_number(at);
        put_text(" ");
        put_hex(outputs[at], output_bytes[at]);
        put_text("\n");
    }
    return 0;
}
