/* The wheel's Python interface keeps the interpreter's lock while a program runs, so that threads
 * with a program each would run one after the other. A thread whose program nobody else runs may
 * have the lock let go of while the driver works; elsewhere it is what keeps two threads out of one
 * program. */
#include "unlocked.h"

#include "turn.h"

namespace {

using Leave = void *(*)();
using Enter = void (*)(void *);

thread_local Leave leave = nullptr;
thread_local Enter enter = nullptr;

} // namespace

namespace openneutron {

Unlocked::Unlocked() {
    if (leave != nullptr) {
        kept_ = leave();
        nd_turn_give();
    }
}

bool Unlocked::wanted() { return leave != nullptr; }

Unlocked::~Unlocked() {
    if (kept_ != nullptr) {
        nd_turn_take();
        enter(kept_);
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
