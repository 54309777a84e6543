/* What a thread lets go of while a model runs: a lock that others could use meanwhile. */
#pragma once

#include <streambuf>

namespace openneutron {

/* Holds nothing while it lives, where this thread has said how (openneutron_unlocked). */
class Unlocked {
  public:
    Unlocked();
    ~Unlocked();
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

    /* Whether this thread has said how: then it is one of several, and its models get one each. */
    static bool wanted();

  private:
    void *kept_ = nullptr;
    std::streambuf *out_ = nullptr, *err_ = nullptr; /* where this thread's caller sent them */
};

} // namespace openneutron
