/* The wheel's Python interface keeps the interpreter's lock while a program runs, so that threads
 * with a program each would run one after the other. A thread whose program nobody else runs may
 * have the lock let go of while the driver works; elsewhere it is what keeps two threads out of one
 * program. */
#include "unlocked.h"

#include <atomic>

namespace {

using Leave = void *(*)();
using Enter = void (*)(void *);

/* Looks at the turn before a thread queues for the lock itself: some 30 microseconds, as long as
 * being woken from that queue takes. */
constexpr int kLooks = 1500;

thread_local Leave leave = nullptr;
thread_local Enter enter = nullptr;

/* Whose turn it is among threads that let go: who has it finds the lock free. What lies between two
 * runs of a small model is shorter than sleeping and waking. */
std::atomic<bool> taken{false};
thread_local bool mine = false;

void take_turn() {
    for (int look = 0; look < kLooks && !mine; ++look) {
        if (!taken.load(std::memory_order_relaxed)) {
            mine = !taken.exchange(true, std::memory_order_acquire);
        }
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

void give_turn() {
    if (mine) {
        mine = false;
        taken.store(false, std::memory_order_release);
    }
}

} // namespace

namespace openneutron {

Unlocked::Unlocked() {
    if (leave != nullptr) {
        kept_ = leave();
        give_turn();
    }
}

bool Unlocked::wanted() { return leave != nullptr; }

Unlocked::~Unlocked() {
    if (kept_ != nullptr) {
        take_turn();
        enter(kept_);
    }
}

} // namespace openneutron

/* From now on this thread's runs call `leaving` before and, with what it gave, `entering` after the
 * driver's part; both NULL: no longer. Not to be called while one of its models runs. */
extern "C" __attribute__((visibility("default"))) void openneutron_unlocked(Leave leaving,
                                                                            Enter entering) {
    give_turn();
    leave = entering != nullptr ? leaving : nullptr;
    enter = entering;
}
