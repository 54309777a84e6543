/* State: first contents, what runs leave, reset, save and restore, and tables that do not add up.
 */
#include "build.h"

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                nk_call *call) = {[KERNEL] = add_one};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

static _Alignas(16) uint8_t input[IMAGE], output[IMAGE], scratch[SCRATCH];
static const void *inputs[] = {input};
static void *outputs[] = {output, scratch, NULL, NULL};
static const NeutronDataConfig data = {inputs, outputs, scratch, NULL};
static char detail[ND_DETAIL_BYTES];

/* Output = state + 1; state = output: a counter. `source` and `fill` are its first contents. */
static void counter(block *b, NeutronStateRecord row) {
    start(b);
    append_call(b, image(NEUTRON_REGION_STATE, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    append_copy(b, (NeutronDmaRecord){.source_region = NEUTRON_REGION_OUTPUT,
                                      .target_region = NEUTRON_REGION_STATE,
                                      .bytes = IMAGE});
    append_wait(b, 0);
    append_head(b, NEUTRON_OPCODE_END, 0, 0);
    b->header.code_bytes = b->size - CODE_AT;
    b->size = (b->size + 15) / 16 * 16;
    b->header.states_offset = b->size;
    b->header.state_count = 1;
    b->header.state_bytes = IMAGE;
    append(b, &row, sizeof row);
    b->size = (b->size + 15) / 16 * 16;
    b->header.microcode_bytes = b->sizes.microcode = b->size;
    b->header.call_count = b->header.layout[4] = 1;
    for (uint32_t at = 0; at < WEIGHTS; at++) b->weights[at] = (uint8_t)(3 * at);
    seal(b);
}

static const NeutronStateRecord sevens = {0, IMAGE, NEUTRON_NO_SOURCE, 0x07070707u};

static NeutronModelHandle prepared(const block *b) {
    const NeutronModelConfig config = config_of(b);
    NeutronModelHandle model = NULL;
    CHECK_EQUAL(neutronModelPrepareChecked(&config, &b->sizes, &model), NEUTRON_NONE);
    return model;
}

static void state_is_kept_and_reset(void) {
    block b;
    counter(&b, sevens);
    NeutronModelHandle model = prepared(&b), other = prepared(&b);
    NeutronModelInfo info;
    CHECK_EQUAL(neutronModelGetInfo(model, &info), NEUTRON_NONE);
    CHECK_EQUAL(info.stateBytes, IMAGE);
    for (uint8_t run = 1; run <= 3; run++) {
        CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
        CHECK_EQUAL(output[0], 7 + run);
        CHECK_EQUAL(output[IMAGE - 1], 7 + run);
    }
    CHECK_EQUAL(neutronRunBlocking(other, &data), NEUTRON_NONE);
    CHECK_EQUAL(output[5], 8);
    CHECK_EQUAL(neutronStateReset(model), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(output[5], 8);
    neutronModelUnprepare(model);
    neutronModelUnprepare(other);
    CHECK_EQUAL(neutronStateReset(NULL), NEUTRON_ERROR_NULL_HANDLE);
}

static void state_is_saved_and_restored(void) {
    block b;
    counter(&b, (NeutronStateRecord){0, IMAGE, 0, 0});
    NeutronModelHandle model = prepared(&b);
    const void *bytes;
    size_t size;
    uint8_t saved[IMAGE];
    CHECK_EQUAL(neutronStateGet(model, &bytes, &size), NEUTRON_NONE);
    CHECK_EQUAL(size, IMAGE);
    CHECK(memcmp(bytes, b.weights, IMAGE) == 0);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    memcpy(saved, bytes, IMAGE);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(neutronStateSet(model, saved, IMAGE), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(model, &data), NEUTRON_NONE);
    CHECK_EQUAL(output[2], 3 * 2 + 2);
    CHECK_EQUAL(neutronStateSet(model, saved, IMAGE - 1), NEUTRON_ERROR_STATE_SIZE);
    CHECK_EQUAL(neutronStateSet(model, NULL, IMAGE), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronStateGet(model, NULL, &size), NEUTRON_ERROR_ARGUMENT_NULL);
    neutronModelUnprepare(model);
}

static void handles_may_have_one_state_in_common(void) {
    block b;
    counter(&b, (NeutronStateRecord){0, IMAGE, 0, 0});
    NeutronModelHandle first = prepared(&b), second = prepared(&b);
    uint8_t *memory = neutronMemAlloc(16, IMAGE + 16);
    const void *bytes;
    size_t size;
    CHECK_EQUAL(neutronStatePlace(first, memory, IMAGE), NEUTRON_NONE);
    CHECK_EQUAL(neutronStateReset(first), NEUTRON_NONE);
    CHECK(memcmp(memory, b.weights, IMAGE) == 0);
    CHECK_EQUAL(neutronRunBlocking(first, &data), NEUTRON_NONE);
    CHECK_EQUAL(neutronStatePlace(second, memory, IMAGE), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(second, &data), NEUTRON_NONE);
    CHECK_EQUAL(neutronStateGet(second, &bytes, &size), NEUTRON_NONE);
    CHECK(bytes == memory && size == IMAGE);
    CHECK_EQUAL(neutronStateReset(second), NEUTRON_NONE);
    CHECK_EQUAL(neutronRunBlocking(first, &data), NEUTRON_NONE);
    const uint8_t once = output[2];
    CHECK_EQUAL(neutronRunBlocking(second, &data), NEUTRON_NONE);
    CHECK_EQUAL(output[2], once + 1); /* a counter: both handles count on */
    CHECK_EQUAL(neutronStatePlace(first, memory, IMAGE + 1), NEUTRON_ERROR_STATE_SIZE);
    CHECK_EQUAL(neutronStatePlace(first, NULL, IMAGE), NEUTRON_ERROR_ARGUMENT_NULL);
    CHECK_EQUAL(neutronStatePlace(first, memory + 1, IMAGE), NEUTRON_ERROR_ALIGNMENT);
    neutronModelUnprepare(first);
    neutronModelUnprepare(second);
    neutronMemFree(memory);
}

static void state_lies_in_the_context(void) {
    block b;
    counter(&b, sevens);
    const NeutronModelConfig config = config_of(&b);
    NeutronModelHandle model = NULL;
    const size_t size = neutronGetModelContextSize(b.microcode, b.size);
    uint8_t *context = neutronMemAlloc(16, size);
    CHECK_EQUAL(neutronModelPrepareIn(context, size - 1, &config, &b.sizes, &model),
                NEUTRON_ERROR_CONTEXT_TOO_SMALL);
    CHECK_EQUAL(neutronModelPrepareIn(context, size, &config, &b.sizes, &model), NEUTRON_NONE);
    const void *bytes;
    size_t held;
    CHECK_EQUAL(neutronStateGet(model, &bytes, &held), NEUTRON_NONE);
    CHECK((const uint8_t *)bytes + held <= context + size);
    CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
    neutronMemFree(context);
    b.header.state_bytes = NEUTRON_MAX_STATE_BYTES + 1;
    seal(&b);
    CHECK_EQUAL(neutronGetModelContextSize(b.microcode, b.size), 0);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_HEADER);
}

static NeutronError with_row(NeutronStateRecord row) {
    block b;
    counter(&b, row);
    return verdict(&b, detail, sizeof detail);
}

static void tables_that_do_not_add_up(void) {
    CHECK_EQUAL(with_row(sevens), NEUTRON_NONE);
    CHECK_EQUAL(with_row((NeutronStateRecord){16, IMAGE, NEUTRON_NO_SOURCE, 0}),
                NEUTRON_ERROR_STATE_TABLE);
    CHECK_EQUAL(with_row((NeutronStateRecord){0, IMAGE - 1, NEUTRON_NO_SOURCE, 0}),
                NEUTRON_ERROR_STATE_TABLE);
    CHECK_EQUAL(with_row((NeutronStateRecord){0, 2 * IMAGE, NEUTRON_NO_SOURCE, 0}),
                NEUTRON_ERROR_STATE_TABLE);
    CHECK_EQUAL(with_row((NeutronStateRecord){0, 16, NEUTRON_NO_SOURCE, 0}),
                NEUTRON_ERROR_STATE_TABLE);
    CHECK_EQUAL(with_row((NeutronStateRecord){0, 0, NEUTRON_NO_SOURCE, 0}),
                NEUTRON_ERROR_STATE_TABLE);
    CHECK_EQUAL(with_row((NeutronStateRecord){0, IMAGE, 16, 0}), NEUTRON_ERROR_STATE_TABLE);
    CHECK_EQUAL(with_row((NeutronStateRecord){0, IMAGE, 0xFFFFFFF0u, 0}),
                NEUTRON_ERROR_STATE_TABLE);
    CHECK_EQUAL(with_row((NeutronStateRecord){0, IMAGE, 0, 1}), NEUTRON_ERROR_STATE_TABLE);
    block b;
    counter(&b, sevens);
    b.header.states_offset = b.size;
    seal(&b);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_HEADER);
    counter(&b, sevens);
    b.header.state_count = 0;
    seal(&b);
    CHECK_EQUAL(verdict(&b, detail, sizeof detail), NEUTRON_ERROR_HEADER);
}

int main(void) {
    state_is_kept_and_reset();
    state_is_saved_and_restored();
    handles_may_have_one_state_in_common();
    state_lies_in_the_context();
    tables_that_do_not_add_up();
    return check_result();
}
