/* A buffer of one delegate, freed with it. */
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

    /* Allocate; false without memory, true for a size of 0. */
    bool allocate(size_t size) {
        if (size > 0 && data_ == nullptr) {
            data_ = neutronMemAlloc(kAlignment, size);
        }
        return size == 0 || data_ != nullptr;
    }

    /* Return memory for one run, or null. The runtime's temporary allocator, which is reset after
     * each delegate, lets all delegates of a program share the same bytes; where it is missing or
     * too small, the buffer allocates and keeps memory of its own. */
    void *for_run(executorch::runtime::MemoryAllocator *temporary, size_t size) {
        if (data_ == nullptr && size > 0 && temporary != nullptr) {
            void *shared = temporary->allocate(size, kAlignment);
            if (shared != nullptr) {
                return shared;
            }
        }
        return allocate(size) ? data_ : nullptr;
    }

    void *data() const { return data_; }

  private:
    void *data_ = nullptr;
};

} // namespace openneutron
