#include "model.h"

/* Default time limit in seconds: a thousand times what the largest models take on a host. */
enum { DEFAULT_SECONDS = 60 };
/* Default limit in bytes for inputs, outputs, scratch, prefetch and state of one graph on a host,
 * where the target has more: ten times what the largest models need. All prepared graphs of a
 * process may take MAX_GRAPHS times that, decoded constants included. */
static const uint64_t default_bytes = UINT64_C(512) << 20;
enum { MAX_GRAPHS = 4 };

#if defined(__unix__) || defined(__APPLE__)
#include <stdlib.h>

/* Read a decimal number from the environment; false when it is malformed or too large. `value`
 * keeps its default when the variable is not set. */
static bool setting(const char *name, uint64_t most, uint64_t *value) {
    const char *text = getenv(name);
    uint64_t found = 0;
    if (text == NULL || *text == 0) return true;
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9' || found > most / 10) return false;
        found = 10 * found + (uint64_t)(*text - '0');
    }
    if (found > most) return false;
    *value = found;
    return true;
}
#else
static bool setting(const char *name, uint64_t most, uint64_t *value) {
    (void)name, (void)most, (void)value;
    return true;
}
#endif

NeutronError nd_timeout(const NeutronModelConfig *config, uint32_t *seconds) {
    uint64_t found = DEFAULT_SECONDS;
    *seconds = config->timeoutSeconds;
    if (*seconds != NEUTRON_TIMEOUT_DEFAULT) return NEUTRON_NONE;
    if (!setting("OPENNEUTRON_TIMEOUT", UINT32_MAX - 1, &found)) return NEUTRON_ERROR_TIMEOUT_VALUE;
    *seconds = (uint32_t)found;
    return NEUTRON_NONE;
}

static uint64_t needed(const nd_program *program) {
    uint64_t bytes = (uint64_t)program->scratch_bytes + program->prefetch_bytes;
    bytes += program->header.state_bytes;
    for (uint32_t row = 0; row < program->header.tensor_count; row++) {
        bytes += nd_tensor(program, row).bytes;
    }
    return bytes;
}

NeutronError nd_check_memory(const nd_program *program, nd_text *detail) {
    const uint64_t has = program->target->memory_bytes, needs = needed(program);
    uint64_t most = has < default_bytes ? has : default_bytes;
    if (!setting("OPENNEUTRON_MEMORY", UINT64_MAX / 10, &most)) return NEUTRON_ERROR_MEMORY_VALUE;
    if (most == 0 || needs <= most) return NEUTRON_NONE;
    nd_text_append(detail,
                   "inputs, outputs, scratch, prefetch and state take %llu bytes, %llu are allowed",
                   (unsigned long long)needs, (unsigned long long)most);
    return NEUTRON_ERROR_MEMORY_LIMIT;
}

NeutronError nd_window_wanted(const nd_program *program, uint32_t *bytes) {
    uint64_t found = UINT32_MAX;
    if (!setting("OPENNEUTRON_WINDOW", UINT32_MAX, &found)) return NEUTRON_ERROR_WINDOW_VALUE;
    *bytes = found < program->header.plain_bytes ? (uint32_t)found : program->header.plain_bytes;
    return NEUTRON_NONE;
}

#if ND_THREADS
static _Atomic uint64_t reserved_bytes; /* by all models that are prepared */

NeutronError nd_reserve_memory(const nd_program *program, uint64_t *bytes) {
    uint64_t most = default_bytes;
    if (!setting("OPENNEUTRON_MEMORY", UINT64_MAX / 10, &most)) return NEUTRON_ERROR_MEMORY_VALUE;
    const uint64_t all = (most > default_bytes ? most : default_bytes) * MAX_GRAPHS;
    *bytes = needed(program) + program->profile_bytes + program->header.plain_bytes;
    const uint64_t before = atomic_fetch_add(&reserved_bytes, *bytes);
    if (most == 0 || before + *bytes <= all) return NEUTRON_NONE;
    nd_release_memory(*bytes);
    return NEUTRON_ERROR_MEMORY_LIMIT;
}

void nd_release_memory(uint64_t bytes) { atomic_fetch_sub(&reserved_bytes, bytes); }
#else
/* Memory that the application provides is not counted. */
NeutronError nd_reserve_memory(const nd_program *program, uint64_t *bytes) {
    (void)program;
    *bytes = 0;
    return NEUTRON_NONE;
}

void nd_release_memory(uint64_t bytes) { (void)bytes; }
#endif
