/* The wheel's Python interface keeps the interpreter's lock while a program runs, so that threads
 * with a program each would run one after the other. A thread whose program nobody else runs may
 * have the lock let go of while the driver works; elsewhere it is what keeps two threads out of one
 * program. */
#include "unlocked.h"

#include <iostream>

#include "turn.h"

namespace {

using Leave = void *(*)();
using Enter = void (*)(void *);

thread_local Leave leave = nullptr;
thread_local Enter enter = nullptr;

/* Where the C++ streams go when no program runs. The wheel sends them to Python while one does, and
 * back where it found them: under the lock the ways of several threads nest, without it they would
 * not, and the last one would leave them with a stream that is gone. */
// Reading a stream's buffer throws nothing.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization,cert-err58-cpp)
std::streambuf *const plain_out = std::cout.rdbuf(), *const plain_err = std::cerr.rdbuf();

} // namespace

namespace openneutron {

Unlocked::Unlocked() {
    if (leave != nullptr) {
        out_ = std::cout.rdbuf(plain_out);
        err_ = std::cerr.rdbuf(plain_err);
        kept_ = leave();
        nd_turn_give();
    }
}

bool Unlocked::wanted() { return leave != nullptr; }

Unlocked::~Unlocked() {
    if (kept_ != nullptr) {
        nd_turn_take();
        enter(kept_);
        std::cout.rdbuf(out_);
        std::cerr.rdbuf(err_);
    }
}

} // namespace openneutron

/* From now on this thread's runs call `leaving` before and, with what it gave, `entering` after the
 * driver's part; both NULL: no longer. Not to be called while one of its models runs. */
extern "C" __attribute__((visibility("default"))) void openneutron_unlocked(Leave leaving,
                                                                            Enter entering) {
    nd_turn_give();
    leave = entering != nullptr ? leaving : nullptr;
    enter = entering;
}
