#include <stdbool.h>

#include "machine.h"

#if ND_CYCLES
#define NM_CONSTANTS(...) {__VA_ARGS__}
#else
#define NM_CONSTANTS(...)
#endif

static const nm_target targets[] = {
#include "generated/targets.inc"
};

/* strcmp() of a C library has some hundred bytes of code. */
static bool same(const char *a, const char *b) {
    while (*a && *a == *b) ++a, ++b;
    return *a == *b;
}

const nm_target *nm_target_find(const char *name) {
    for (size_t at = 0; name != NULL && at < sizeof targets / sizeof targets[0]; at++) {
        if (same(targets[at].name, name)) return &targets[at];
    }
    return NULL;
}
