#include "nd_features.h"
#include "neutron_errors.h"

typedef struct {
    NeutronError error;
    const char *name;
    const char *sentence;
} error_row;

#define ROW(name, component, category, code, sentence) {NEUTRON_ERROR_##name, #name, sentence},
static const error_row rows[] = {{NEUTRON_NONE, "NONE", "no error"}, NEUTRON_ERROR_TABLE(ROW)};
#undef ROW

static const error_row no_messages = {NEUTRON_NONE, "", ""};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static const error_row *find(NeutronError error) {
    for (uint32_t at = 0; at < ROW_COUNT; at++) {
        if (rows[at].error == error) return &rows[at];
    }
    return NULL;
}

const char *neutronErrorString(NeutronError error) {
    const error_row *row = ND_MESSAGES ? find(error) : &no_messages;
    return row ? row->sentence : "unknown error word; driver and caller have different versions";
}

const char *neutronErrorName(NeutronError error) {
    const error_row *row = ND_MESSAGES ? find(error) : &no_messages;
    return row ? row->name : NULL;
}

bool neutronErrorAt(uint32_t index, NeutronError *error) {
    if (error == NULL || index >= ROW_COUNT) return false;
    *error = rows[index].error;
    return true;
}
