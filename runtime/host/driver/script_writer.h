/* Collects the steps of a script in tables and packs them into one block of memory. */
#ifndef ND_SCRIPT_WRITER_H
#define ND_SCRIPT_WRITER_H

#include "loop_layers.h"
#include "script.h"

#if ND_THREADS

typedef struct {
    uint32_t max_steps;
    uint32_t step_count, call_count, operand_count, param_count, write_back_count;
    nd_step *steps;
    nd_prepared_call *calls;
    NeutronOperandRecord *operands;
    int32_t *params;
    nd_write_back *write_backs;
    void *memory;
} nd_writer;

/* Allocate tables for a program of that many instructions; false without memory. */
bool nd_writer_begin(nd_writer *w, uint32_t instructions);
void nd_writer_end(nd_writer *w);
/* Add a step; false when the table is full. */
bool nd_add_step(nd_writer *w, nd_step_kind kind, uint32_t which, nd_span rows, uint64_t cycles);
/* Add a decoded call, at most one per instruction, and return its index. Operands of the mask
 * `cached` are at `places` in the cache. */
uint32_t nd_add_call(nd_writer *w, const nd_item *item, uint32_t cached,
                     const nd_cache_place *places);
/* Add a step that copies cached rows of an output to its region, limited to `bytes`. */
bool nd_add_write_back(nd_writer *w, const nd_item *item, nd_cache_place from, nd_span rows,
                       nd_span bytes);
/* The finished script, with a cache of `cache_bytes` behind it (0: none); NULL without memory. */
nd_script *nd_writer_script(const nd_writer *w, uint32_t end, uint32_t cache_bytes);

#endif
#endif
