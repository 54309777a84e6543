/* Memory of one delegate, given back with it. */
#pragma once

#include <cstddef>
#include <utility>

#include <executorch/runtime/core/memory_allocator.h>

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

    /* Memory for one run, null when there is none. The runtime's temporary allocator, emptied
     * behind each delegate, lets all delegates of a program share the same bytes; where it is
     * missing or too small the buffer gets memory of its own and keeps it. */
    void *for_run(executorch::runtime::MemoryAllocator *temporary, size_t size) {
        if (data_ == nullptr && size > 0 && temporary != nullptr) {
            void *lent = temporary->allocate(size, kAlignment);
            if (lent != nullptr) {
                return lent;
            }
        }
        return allocate(size) ? data_ : nullptr;
    }

    void *data() const { return data_; }

  private:
    void *data_ = nullptr;
};

} // namespace openneutron
