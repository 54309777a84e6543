#include "streams.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "message.h"

namespace openneutron {

using executorch::runtime::Error;

namespace {

struct Entry {
    Model *model;
    std::string stream;
};

/* Both live as long as the process: a program's own static objects may be destroyed after ours. */
std::mutex &guard() {
    static std::mutex *const mutex = new std::mutex;
    return *mutex;
}

std::vector<Entry> &entries() {
    static std::vector<Entry> *const all = new std::vector<Entry>;
    return *all;
}

} // namespace

bool add_to_streams(Model *model, const char *stream) {
    const std::lock_guard<std::mutex> hold(guard());
    try {
        entries().push_back({model, stream});
    } catch (const std::bad_alloc &) {
        return false;
    }
    return true;
}

void remove_from_streams(const Model *model) {
    const std::lock_guard<std::mutex> hold(guard());
    std::vector<Entry> &all = entries();
    all.erase(std::remove_if(all.begin(), all.end(),
                             [model](const Entry &entry) { return entry.model == model; }),
              all.end());
}

Error reset_streams(const char *stream) {
    const std::lock_guard<std::mutex> hold(guard());
    bool found = stream == nullptr;
    for (const Entry &entry : entries()) {
        if (stream == nullptr || entry.stream == stream) {
            ON_TRY(entry.model->reset());
            found = true;
        }
    }
    ON_REQUIRE(found, NotFound, "no model was loaded with the option stream \"%s\"", stream);
    return Error::Ok;
}

} // namespace openneutron
