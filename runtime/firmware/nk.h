/* What every firmware kernel sees: decoded operands with real pointers, its parameters, its rows.
 *
 * A kernel is one function with two verbs. NK_CHECK validates operands and parameters against each
 * other and states with nk_inside() and its kin every byte a run may touch; after it returns 0 a
 * run touches nothing else. NK_RUN computes output rows [row0, row1) of every image. Inputs may be
 * rings: always address rows through nk_row().
 */
#ifndef NK_H
#define NK_H

#include <stddef.h>
#include <stdint.h>

#include "nd_features.h"
#include "generated/microcode.h"
#include "neutron.h"
#include "neutron_errors.h"

typedef struct {
    uint8_t *data; /* region base + offset; NULL while checking */
    uint32_t plane, pitch, pixel, ring;
    uint32_t batch, height, width, channels;
    uint8_t dtype, region, index, present;
    uint32_t available; /* bytes from `data` to the end of the region */
} nk_operand;

typedef struct {
    nk_operand operands[NEUTRON_MAX_OPERANDS];
    const int32_t *params; /* cast to the kernel's own generated struct */
    const void *place;     /* of the instruction in the microcode: no other call has the same */
    const void *model;     /* the prepared model's handle, NULL: none; no other ever has the same */
    uint32_t operand_count, param_count;
    uint32_t kernel;
    uint32_t units, length; /* M and N of the weight packing */
    uint8_t rounding;
    int32_t row0, row1; /* output rows, already clipped to [0, height) */
    const char *why;    /* NK_CHECK: set to a sentence when refusing */
    int64_t index;      /* NK_RUN: what nk_index_outside() refused, */
    int32_t limit;      /* and the first index that does not exist */
    void *context;      /* host only: thread-local workspace of SIMD loops; NULL elsewhere */
    bool (*keep_running)(const void *watch); /* NULL: no deadline */
    const void *watch;
} nk_call;

enum { NK_CHECK = 0, NK_RUN = 1 };

/* The entry of a kernel; the table neutronKernels[] holds one per kernel id. */
typedef int32_t (*nk_kernel)(uint32_t verb, nk_call *call);

/* Indexed by kernel id; entries may be NULL. The library's default is weak: a linked selection
 * takes precedence. */
extern int32_t (*neutronKernels[])(uint32_t verb, nk_call *call);
extern const uint32_t neutronKernelCount;

static inline uint8_t *nk_row(const nk_operand *o, uint32_t image, int32_t y) {
    /* `data` is NULL only while checking, when no kernel addresses rows. */
    /* NOLINTNEXTLINE(clang-analyzer-core.NullPointerArithm) */
    return o->data + (size_t)image * o->plane + (size_t)((uint32_t)y % o->ring) * o->pitch;
}

/* Refuse with a sentence; a kernel's check reads `if (...) return nk_refuse(call, "why");`. */
static inline int32_t nk_refuse(nk_call *call, const char *why) {
    call->why = ND_MESSAGES ? why : "";
    return NEUTRON_ERROR(NEUTRON_COMPONENT_FIRMWARE, NEUTRON_FIRMWARE_MICROCODE, 1);
}

/* End the run: an index that is known only now does not exist. */
static inline int32_t nk_index_outside(nk_call *call, int64_t index, int32_t limit) {
    call->index = index;
    call->limit = limit;
    return NEUTRON_ERROR_INDEX;
}

/* 1 when the run's time is over: what the kernel leaves unfinished is never looked at. Kernels
 * whose rows may be long ask between pixels; SIMD loops that do not ask leave such calls to the
 * portable ones. */
static inline int nk_stopped(const nk_call *call) {
    return call->keep_running != NULL && !call->keep_running(call->watch);
}

/* 1 when every row of the operand, as width x channels elements at its pitches, lies inside its
 * region; computed in 64 bits so that no field can wrap. Defined in driver/footprint.c; the one
 * home of this arithmetic. */
int nk_inside(const nk_operand *operand);
/* 1 when `bytes` from the start lie inside: for flat operands (weights, tables, workspace). */
int nk_inside_flat(const nk_operand *operand, uint64_t bytes);
/* Bytes of one of the operand's elements; 0 for an unknown type. */
uint32_t nk_item_bytes(const nk_operand *operand);
/* Bytes of the operand's elements, gaps not counted. The validator bounds each operand's elements.
 */
uint64_t nk_bytes(const nk_operand *operand);
/* 1 when byte offsets [low, high) relative to `data` lie inside: for strided N-D kernels. low may
 * not be negative. */
int nk_inside_range(const nk_operand *operand, int64_t low, int64_t high);

#endif
