#include <stdatomic.h>
#include <string.h>

#include "model.h"

/* The API's own exception to "no state outside the handle": callbacks and suspension belong to the
 * device, not to a model. Set the callbacks while nothing runs. */
static NeutronConfig config;
static atomic_bool suspended;

static void copy_at_once(void *dst, void *src, uint32_t size, uint32_t channel) {
    (void)channel;
    memcpy(dst, src, size);
}

static void wait_for_nothing(uint32_t channel) { (void)channel; }

NeutronConfig nd_config(void) {
    const NeutronConfig found = {config.copy ? config.copy : copy_at_once,
                                 config.wait ? config.wait : wait_for_nothing};
    return found;
}

bool nd_suspended(void) { return atomic_load_explicit(&suspended, memory_order_relaxed); }

NeutronError neutronInit(void) {
    memset(&config, 0, sizeof config);
    return neutronResume();
}

NeutronError neutronDeinit(void) { return neutronInit(); }

NeutronError neutronSetConfig(const NeutronConfig *given) {
    if (given == NULL || given->copy == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    config = *given;
    return NEUTRON_NONE;
}

NeutronError neutronSuspend(void) {
    atomic_store_explicit(&suspended, true, memory_order_relaxed);
    return NEUTRON_NONE;
}

NeutronError neutronResume(void) {
    atomic_store_explicit(&suspended, false, memory_order_relaxed);
    return NEUTRON_NONE;
}

/* A project has the version as a header, a build of the whole tree gives it on the command line. */
#if !defined(OPENNEUTRON_VERSION) && defined(__has_include)
#if __has_include("openneutron_version.h")
#include "openneutron_version.h"
#endif
#endif
#ifndef OPENNEUTRON_VERSION
#error "define OPENNEUTRON_VERSION: the version's home is src/openneutron/_version.py"
#endif

const char *neutronGetSdkVersion(void) { return "openneutron " OPENNEUTRON_VERSION; }
