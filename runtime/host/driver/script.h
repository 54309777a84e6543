/* The script of a model: what a run does on a host, computed once when the model is prepared.
 *
 * Calls are decoded and priced once, loops run many rows per call (cascade.h), and a row cache
 * avoids copies (row_cache.h). Everything else runs from the microcode, instruction by instruction.
 * So does a whole run with an event sink, a trace or a profile. */
#ifndef ND_SCRIPT_H
#define ND_SCRIPT_H

#include "model.h"

#if ND_THREADS

/* A decoded call. */
typedef struct {
    uint64_t work;             /* of one row */
    uint32_t offset;           /* of its instruction */
    uint32_t operands, params; /* index of the first one in the script */
    uint16_t kernel, param_count;
    uint8_t operand_count, rounding;
    uint8_t cached; /* mask of operands whose offset is in the cache, not in their region */
} nd_prepared_call;

_Static_assert(NEUTRON_MAX_OPERANDS <= 8, "nd_prepared_call.cached has a bit for each operand");

/* A copy of cached rows to their region. */
typedef struct {
    NeutronOperandRecord to;
    uint32_t from, ring; /* byte of the cache, and rows there */
    uint32_t first, end; /* bytes of the region that may be written */
} nd_write_back;

typedef enum { ND_STEP_MICROCODE, ND_STEP_CALL, ND_STEP_WRITE_BACK } nd_step_kind;

typedef struct {
    uint64_t cycles; /* added to the array's clock before the step */
    uint32_t which;  /* byte of the instruction, index of a call or of a write-back */
    int32_t row0, row1;
    uint8_t kind;
} nd_step;

struct nd_script {
    uint32_t step_count, end; /* `end`: byte of the last instruction */
    const nd_step *steps;
    const nd_prepared_call *calls;
    const NeutronOperandRecord *operands;
    const int32_t *params;
    const nd_write_back *write_backs;
    uint8_t *cache;             /* NULL: the thread's own cache is large enough */
    nd_script *single_threaded; /* for runs on one thread; NULL: this one */
};

/* Build the script of a validated program, `shared` for a model with a thread pool; NULL where
 * there is none, and then runs follow the microcode. */
nd_script *nd_script_make(const nd_program *program, bool shared);
void nd_script_free(nd_script *script);
/* The cache of a run: the script's, or this thread's. */
uint8_t *nd_cache_memory(const nd_script *script);

#endif
#endif
