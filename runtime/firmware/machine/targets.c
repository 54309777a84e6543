#include <string.h>

#include "machine.h"

static const nm_target targets[] = {
#include "generated/targets.inc"
};

const nm_target *nm_target_find(const char *name) {
    for (size_t at = 0; name != NULL && at < sizeof targets / sizeof targets[0]; at++) {
        if (strcmp(targets[at].name, name) == 0) return &targets[at];
    }
    return NULL;
}
