#include "turn.h"

#include "neutron.h"
#include "platform.h"

#if ND_THREADS
#include <stdatomic.h>

enum { LOOKS = 1500 };

static atomic_bool taken;
static _Thread_local bool mine;

void nd_turn_take(void) {
    for (int look = 0; look < LOOKS && !mine; look++) {
        if (!atomic_load_explicit(&taken, memory_order_relaxed))
            mine = !atomic_exchange_explicit(&taken, true, memory_order_acquire);
        if (!mine) nd_pause();
    }
}

void nd_turn_give(void) {
    if (!mine) return;
    mine = false;
    atomic_store_explicit(&taken, false, memory_order_release);
}
#else
void nd_turn_take(void) {}
void nd_turn_give(void) {}
#endif

NeutronError neutronRunInTurn(NeutronModelHandle model, const NeutronDataConfig *data) {
    nd_turn_give();
    const NeutronError error = neutronRunBlocking(model, data);
    nd_turn_take();
    return error;
}

void neutronTurnEnd(void) { nd_turn_give(); }
