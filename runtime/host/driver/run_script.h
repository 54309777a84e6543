/* Runs a script. */
#ifndef ND_RUN_SCRIPT_H
#define ND_RUN_SCRIPT_H

#include "run_context.h"
#include "script.h"

#if ND_THREADS

/* Do the steps of a script; `run_microcode` runs the instruction or loop at a byte of the
 * microcode. */
NeutronError nd_run_script(nd_run_context *r, const nd_script *script,
                           NeutronError (*run_microcode)(nd_run_context *r, uint32_t offset));

#endif
#endif
