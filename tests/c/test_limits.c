/* What a run may take of the machine: defaults, and the settings that lift them. */
#define _GNU_SOURCE /* setenv */
#include <stdlib.h>

#include "build.h"

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                nk_call *call) = {[KERNEL] = add_one};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

static NeutronError prepared(const block *b, uint32_t timeout) {
    NeutronModelHandle model = NULL;
    NeutronModelConfig config = config_of(b);
    config.timeoutSeconds = timeout;
    const NeutronError error = neutronModelPrepareChecked(&config, &b->sizes, &model);
    if (error == NEUTRON_NONE) CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
    return error;
}

static uint32_t timeout_of(uint32_t given) {
    uint32_t found = 0;
    const NeutronModelConfig config = {NULL, NULL, NULL, given};
    CHECK_EQUAL(nd_timeout(&config, &found), NEUTRON_NONE);
    return found;
}

static void timeouts(const block *b) {
    CHECK_EQUAL(timeout_of(0), 0);
    CHECK_EQUAL(timeout_of(7), 7);
    CHECK_EQUAL(timeout_of(NEUTRON_TIMEOUT_DEFAULT), 60);
    setenv("OPENNEUTRON_TIMEOUT", "5", 1);
    CHECK_EQUAL(timeout_of(NEUTRON_TIMEOUT_DEFAULT), 5);
    CHECK_EQUAL(timeout_of(7), 7);
    const char *wrong[] = {"soon", "-1", "1.5", "4294967295", "99999999999999999999999", " 1"};
    for (int at = 0; at < 6; at++) {
        setenv("OPENNEUTRON_TIMEOUT", wrong[at], 1);
        CHECK_EQUAL(prepared(b, NEUTRON_TIMEOUT_DEFAULT), NEUTRON_ERROR_TIMEOUT_VALUE);
        CHECK_EQUAL(prepared(b, 1), NEUTRON_NONE);
    }
    unsetenv("OPENNEUTRON_TIMEOUT");
}

static void memory(block *b) {
    char detail[200];
    b->header.layout[0] = 8 << 20; /* imxrt700 has 7.5 MiB */
    b->sizes.scratch = 8 << 20;
    seal(b);
    CHECK_EQUAL(prepared(b, 0), NEUTRON_ERROR_MEMORY_LIMIT);
    CHECK_EQUAL(verdict(b, detail, sizeof detail), NEUTRON_ERROR_MEMORY_LIMIT);
    CHECK_TEXT(detail, "inputs, outputs, scratch, prefetch and state take 8388672 bytes, 7864320 "
                       "are allowed");
    const char *enough[] = {"0", "8388672"}, *wrong[] = {"1G", "-1", "0x10"};
    for (int at = 0; at < 2; at++) {
        setenv("OPENNEUTRON_MEMORY", enough[at], 1);
        CHECK_EQUAL(prepared(b, 0), NEUTRON_NONE);
    }
    setenv("OPENNEUTRON_MEMORY", "8388671", 1);
    CHECK_EQUAL(prepared(b, 0), NEUTRON_ERROR_MEMORY_LIMIT);
    for (int at = 0; at < 3; at++) {
        setenv("OPENNEUTRON_MEMORY", wrong[at], 1);
        CHECK_EQUAL(prepared(b, 0), NEUTRON_ERROR_MEMORY_VALUE);
    }
    unsetenv("OPENNEUTRON_MEMORY");
}

/* What nobody can read is refused, for models whose constants are coded. */
static void window(block *b) {
    const uint8_t flat[] = {0x14, 16, 16, 0}; /* packed words: one raw section of 16 bytes */
    const uint32_t before = b->size;
    b->header.sections_offset = b->size;
    b->header.section_count = 1;
    b->header.plain_bytes = 16;
    append(b, flat, sizeof flat);
    b->size = (b->size + 15) / 16 * 16;
    b->header.microcode_bytes = b->sizes.microcode = b->size;
    seal(b);
    const char *good[] = {"0", "15", "4096"}, *wrong[] = {"1K", "-1", "4294967296"};
    for (int at = 0; at < 3; at++) {
        setenv("OPENNEUTRON_WINDOW", good[at], 1);
        CHECK_EQUAL(prepared(b, 0), NEUTRON_NONE);
        setenv("OPENNEUTRON_WINDOW", wrong[at], 1);
        CHECK_EQUAL(prepared(b, 0), NEUTRON_ERROR_WINDOW_VALUE);
    }
    unsetenv("OPENNEUTRON_WINDOW");
    b->header.sections_offset = b->header.section_count = b->header.plain_bytes = 0;
    b->size = b->header.microcode_bytes = b->sizes.microcode = before;
    seal(b);
}

/* Each graph may have 512 MiB, all that are prepared at once 2 GiB. */
static void memory_of_all(block *b) {
    enum { FIT = 4 };
    NeutronModelHandle models[FIT], more = NULL;
    const NeutronModelConfig config = config_of(b);
    b->header.layout[0] = (512 << 20) - 64; /* beside 32 bytes of input and output each */
    b->sizes.scratch = b->header.layout[0];
    seal(b);
    setenv("OPENNEUTRON_MEMORY", "536870912", 1);
    for (int twice = 0; twice < 2; twice++) {
        for (int at = 0; at < FIT; at++) {
            CHECK_EQUAL(neutronModelPrepareChecked(&config, &b->sizes, &models[at]), NEUTRON_NONE);
        }
        CHECK_EQUAL(neutronModelPrepareChecked(&config, &b->sizes, &more),
                    NEUTRON_ERROR_MEMORY_LIMIT);
        for (int at = 0; at < FIT; at++) {
            CHECK_EQUAL(neutronModelUnprepare(models[at]), NEUTRON_NONE);
        }
    }
    unsetenv("OPENNEUTRON_MEMORY");
}

int main(void) {
    block b;
    start(&b);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    finish(&b, 1);
    timeouts(&b);
    window(&b);
    memory(&b);
    memory_of_all(&b);
    return check_result();
}
