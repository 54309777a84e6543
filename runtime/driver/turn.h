/* Turns of threads that each run a model of their own and share a lock in between, as those of a
 * Python program do: who has the turn finds the lock free. What lies between two runs of a small
 * model is shorter than sleeping and waking. */
#ifndef ND_TURN_H
#define ND_TURN_H

#ifdef __cplusplus
extern "C" {
#endif

/* Wait for the turn for some 30 microseconds, as long as being woken from a queue takes; without it
 * the caller queues for the lock itself. */
void nd_turn_take(void);
/* Nothing where the caller has none. */
void nd_turn_give(void);

#ifdef __cplusplus
}
#endif
#endif
