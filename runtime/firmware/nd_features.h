/* What an image may leave out, a word for each on the compiler's command line. Code of a part that
 * is left out stays in its place behind a constant condition; the linker finds nobody who calls it.
 */
#ifndef ND_FEATURES_H
#define ND_FEATURES_H

/* The cycle model: without it neutronGetCycles() gives 0, and events and profiles have no times. */
#if defined(NEUTRON_NO_CYCLES)
#define ND_CYCLES 0
#else
#define ND_CYCLES 1
#endif

/* Decoders of stored forms: without them a model with coded constants is refused. */
#if defined(NEUTRON_NO_DECODERS)
#define ND_DECODERS 0
#else
#define ND_DECODERS 1
#endif

/* Sentences: without them errors are words alone, kernels have no names, and traces are empty. */
#if defined(NEUTRON_NO_MESSAGES)
#define ND_MESSAGES 0
#else
#define ND_MESSAGES 1
#endif

#endif
