/* What the methods of one program share: weights that are stored once, and one state. */
#pragma once

#include <memory>
#include <optional>

#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>

#include "buffer.h"
#include "neutron.h"
#include "payload.h"

namespace openneutron {

class Shared {
  public:
    /* The weights of this key of a program, loaded once for all of its delegates, and the state
     * that these have in common. A program is known by its named data. */
    static executorch::runtime::Result<std::shared_ptr<Shared>> of(
        const executorch::runtime::NamedDataMap *program, const char *key);
    ~Shared() = default;
    Shared(const Shared &) = delete;
    Shared &operator=(const Shared &) = delete;

    Block weights() const { return weights_; }

    /* Let a model keep its state here; the first one gives it its first contents. */
    executorch::runtime::Error hold_state(NeutronModelHandle model, size_t size);

  private:
    Shared() = default;
    executorch::runtime::Error load(const executorch::runtime::NamedDataMap &program,
                                    const char *key);

    std::optional<executorch::runtime::FreeableBuffer> loaded_; /* frees itself */
    Buffer copy_; /* used where the program holds the weights unaligned */
    Block weights_{};
    Buffer state_;
    size_t state_bytes_ = 0;
};

} // namespace openneutron
