/* Memory of one delegate, given back with it. */
#pragma once

#include <cstddef>
#include <utility>

#include "neutron.h"

namespace openneutron {

constexpr size_t kAlignment = 16; /* of every buffer the driver sees */

class Buffer {
  public:
    Buffer() = default;
    ~Buffer() { neutronMemFree(data_); }
    Buffer(Buffer &&other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    Buffer &operator=(Buffer &&) = delete;

    /* False when there is no memory; a size of 0 needs none. */
    bool allocate(size_t size) {
        if (size > 0 && data_ == nullptr) {
            data_ = neutronMemAlloc(kAlignment, size);
        }
        return size == 0 || data_ != nullptr;
    }

    void *data() const { return data_; }

  private:
    void *data_ = nullptr;
};

} // namespace openneutron
