/* The tables of a script while it is written, and the script that they become. */
#ifndef ND_WRITER_H
#define ND_WRITER_H

#include "layers.h"
#include "script.h"

#if ND_THREADS

typedef struct {
    uint32_t most_acts;
    uint32_t acts, readies, operands, params, backs;
    nd_act *act;
    nd_ready *ready;
    NeutronOperandRecord *operand;
    int32_t *param;
    nd_back *back;
    void *memory;
} nd_writer;

/* Tables for a program of so many instructions; false where there is no memory. */
bool nd_writer_begin(nd_writer *w, uint32_t instructions);
void nd_writer_end(nd_writer *w);
/* One more act; false where there are too many. */
bool nd_write_act(nd_writer *w, nd_deed deed, uint32_t which, nd_span rows, uint64_t cycles);
/* A call whose operands of the mask `held` lie elsewhere: its number. Each instruction becomes one
 * at most. */
uint32_t nd_write_call(nd_writer *w, const nd_item *item, uint32_t held, const nd_shadow *shadows);
/* Bring rows of an output back from where they are held, as far as they are in `bytes`. */
bool nd_write_back(nd_writer *w, const nd_item *item, nd_shadow held, nd_span rows, nd_span bytes);
/* What was written, with `held` bytes for rows where the thread's own are not enough; NULL without
 * memory. */
nd_script *nd_writer_script(const nd_writer *w, uint32_t end, uint32_t held);

#endif
#endif
