/* What a run does on a host, decided when a model is prepared: its calls are decoded and priced
 * once, loops run many rows at a time (cascade.h), and rows are held where that saves copies
 * (held.h). The rest is done as the microcode says, instruction by instruction, and so is a run
 * that somebody watches. */
#ifndef ND_SCRIPT_H
#define ND_SCRIPT_H

#include "model.h"

#if ND_THREADS

/* A decoded call. */
typedef struct {
    uint64_t work;             /* of a row */
    uint32_t offset;           /* of its instruction */
    uint32_t operands, params; /* the first of each in the script */
    uint16_t kernel, param_count;
    uint8_t operand_count, rounding;
    uint8_t held; /* mask of operands whose offset is in the thread's memory, not in their region */
} nd_ready;

_Static_assert(NEUTRON_MAX_OPERANDS <= 8, "nd_ready.held has a bit for each operand");

/* Rows of an output on their way from where they are held to where they belong. */
typedef struct {
    NeutronOperandRecord to;
    uint32_t from, ring; /* byte of the thread's memory, and rows there */
    uint32_t first, end; /* only these bytes of the region */
} nd_back;

typedef enum { ND_AS_IS, ND_MAKE, ND_BRING_BACK } nd_deed;

typedef struct {
    uint64_t cycles; /* of the array, before it begins */
    uint32_t which;  /* byte of the instruction; nd_ready; or nd_back */
    int32_t row0, row1;
    uint8_t deed;
} nd_act;

struct nd_script {
    uint32_t acts, end; /* byte of the last instruction */
    const nd_act *act;
    const nd_ready *ready;
    const NeutronOperandRecord *operands;
    const int32_t *params;
    const nd_back *back;
    uint8_t *memory;  /* for held rows; NULL: the thread's own is enough */
    nd_script *alone; /* for runs of one thread; NULL: the same */
};

/* The script of a validated program; `shared`: threads share its calls, at least in some runs. NULL
 * where there is none. */
nd_script *nd_script_make(const nd_program *program, bool shared);
void nd_script_free(nd_script *script);
/* Memory for held rows: the script's, or this thread's. */
uint8_t *nd_held_memory(const nd_script *script);

#endif
#endif
