#include "shared.h"

#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "message.h"

namespace openneutron {

using executorch::runtime::Error;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::NamedDataMap;
using executorch::runtime::Result;

namespace {

using Key = std::pair<const NamedDataMap *, std::string>;

/* Both live as long as the process: a program's own static objects may be destroyed after ours. */
std::mutex &guard() {
    static std::mutex *const mutex = new std::mutex;
    return *mutex;
}

std::map<Key, std::weak_ptr<Shared>> &entries() {
    static std::map<Key, std::weak_ptr<Shared>> *const all =
        new std::map<Key, std::weak_ptr<Shared>>;
    return *all;
}

} // namespace

Result<std::shared_ptr<Shared>> Shared::of(const NamedDataMap *program, const char *key) {
    ON_REQUIRE(program != nullptr, InvalidProgram,
               "the program has no named data, and this payload's weights are there");
    const std::lock_guard<std::mutex> hold(guard());
    try {
        std::map<Key, std::weak_ptr<Shared>> &all = entries();
        for (auto at = all.begin(); at != all.end();) {
            at = at->second.expired() ? all.erase(at) : std::next(at);
        }
        std::weak_ptr<Shared> &known = all[{program, key}];
        std::shared_ptr<Shared> found = known.lock();
        if (found == nullptr) {
            found.reset(new Shared);
            ON_TRY(found->load(*program, key));
            known = found;
        }
        return found;
    } catch (const std::bad_alloc &) {
        ON_LOG("no memory for what the methods of a program share");
        return Error::DelegateMemoryAllocationFailed;
    }
}

Error Shared::load(const NamedDataMap &program, const char *key) {
    Result<FreeableBuffer> data = program.get_data(key);
    ON_REQUIRE(data.ok(), InvalidProgram, "the program has no named data \"%s\"", key);
    const size_t size = data->size();
    const void *bytes = data->data();
    if (reinterpret_cast<uintptr_t>(bytes) % kAlignment != 0) {
        ON_REQUIRE(copy_.allocate(size), DelegateMemoryAllocationFailed,
                   "no memory for %zu bytes of weights", size);
        std::memcpy(copy_.data(), bytes, size);
        bytes = copy_.data();
        data->Free();
    } else {
        loaded_.emplace(std::move(data.get()));
    }
    weights_ = {static_cast<const uint8_t *>(bytes), size};
    return Error::Ok;
}

Error Shared::hold_state(NeutronModelHandle model, size_t size) {
    if (size == 0) {
        return Error::Ok;
    }
    const std::lock_guard<std::mutex> hold(guard());
    const bool first = state_bytes_ == 0;
    ON_REQUIRE(first || size == state_bytes_, InvalidProgram,
               "a method keeps %zu bytes of state, another of the same program %zu", size,
               state_bytes_);
    ON_REQUIRE(state_.allocate(size), DelegateMemoryAllocationFailed,
               "no memory for %zu bytes of state", size);
    state_bytes_ = size;
    NeutronError error = neutronStatePlace(model, state_.data(), size);
    if (error == NEUTRON_NONE && first) {
        error = neutronStateReset(model);
    }
    ON_REQUIRE(error == NEUTRON_NONE, Internal, "could not place the state: %s (driver error 0x%x)",
               neutronErrorString(error), static_cast<unsigned>(error));
    return Error::Ok;
}

} // namespace openneutron
