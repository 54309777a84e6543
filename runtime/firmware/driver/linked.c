#include "neutron_linked.h"

#include <string.h>

#include "model.h"

/* The beginning of an arena; pointers to inputs, outputs and the run's buffers follow. */
typedef struct {
    uint32_t ready; /* its address, so that memory which was never initialised is refused */
    uint32_t inputs, outputs;
    NeutronModelHandle handle;
    uint8_t *prefetch;
    const void *pointers[];
} arena_head;

_Static_assert(sizeof(arena_head) + 3 * sizeof(void *) <= NEUTRON_LINKED_BYTES(0, 0),
               "an arena without inputs and outputs holds its head");

static uint32_t aligned(uint32_t bytes) {
    return (bytes + NEUTRON_ALIGNMENT - 1) / NEUTRON_ALIGNMENT * NEUTRON_ALIGNMENT;
}

static uint32_t mark_of(const void *arena) { return (uint32_t)(uintptr_t)arena ^ NEUTRON_MAGIC; }

static arena_head *head_of(void *arena) {
    if (arena == NULL || (uintptr_t)arena % NEUTRON_ALIGNMENT) return NULL;
    arena_head *head = arena;
    return head->ready == mark_of(arena) ? head : NULL;
}

NEUTRON_API NeutronError neutronLinkedInit(const NeutronLinkedModel *model, void *arena,
                                           uint32_t bytes) {
    if (model == NULL || arena == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if ((uintptr_t)arena % NEUTRON_ALIGNMENT) return NEUTRON_ERROR_ALIGNMENT;
    if (bytes < model->arena_bytes) return NEUTRON_ERROR_CONTEXT_TOO_SMALL;
    const uint32_t head_bytes = aligned(NEUTRON_LINKED_BYTES(model->inputs, model->outputs)),
                   scratch = aligned(model->scratch_bytes),
                   prefetch = aligned(model->prefetch_bytes),
                   profile = aligned(model->profile_bytes),
                   before = head_bytes + scratch + prefetch + profile;
    if (before > bytes) return NEUTRON_ERROR_CONTEXT_TOO_SMALL;
    arena_head *head = arena;
    uint8_t *at = (uint8_t *)arena + head_bytes;
    memset(head, 0, head_bytes);
    head->inputs = model->inputs;
    head->outputs = model->outputs;
    const void **buffers = head->pointers + model->inputs + model->outputs;
    buffers[0] = at;
    buffers[1] = profile ? at + scratch + prefetch : NULL;
    head->prefetch = at + scratch;

    const uint8_t *payload = (const uint8_t *)model->payload;
    const NeutronModelConfig config = {payload + model->microcode_offset,
                                       payload + model->weights_offset,
                                       payload + model->kernels_offset, 0};
    const NeutronModelSizes sizes = {model->microcode_bytes, model->weights_bytes,
                                     model->kernels_bytes, model->scratch_bytes,
                                     model->prefetch_bytes};
    const NeutronError error = neutronModelPrepareLinked(
        at + scratch + prefetch + profile, bytes - before, &config, &sizes, &head->handle);
    if (error == NEUTRON_NONE) head->ready = mark_of(arena);
    return error;
}

NEUTRON_API NeutronError neutronLinkedRun(void *arena, const void *const *inputs,
                                          void *const *outputs) {
    arena_head *head = head_of(arena);
    if (head == NULL) return NEUTRON_ERROR_STALE_HANDLE;
    if ((inputs == NULL && head->inputs) || (outputs == NULL && head->outputs))
        return NEUTRON_ERROR_ARGUMENT_NULL;
    const void **own = head->pointers;
    if (head->inputs) memcpy(own, inputs, head->inputs * sizeof *own);
    if (head->outputs) memcpy(own + head->inputs, outputs, head->outputs * sizeof *own);
    /* The driver writes through pointers to outputs only, which come as such. */
    void **written = (void **)(uintptr_t)(own + head->inputs);
    const NeutronDataConfig data = {own, written, NULL, head->prefetch};
    return neutronRunBlocking(head->handle, &data);
}

NEUTRON_API NeutronError neutronLinkedReset(void *arena) {
    arena_head *head = head_of(arena);
    return head == NULL ? NEUTRON_ERROR_STALE_HANDLE : neutronStateReset(head->handle);
}
