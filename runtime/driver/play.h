/* A run that follows a script. */
#ifndef ND_PLAY_H
#define ND_PLAY_H

#include "runner.h"
#include "script.h"

#if ND_THREADS

/* Do what the script says; `as_is` does the instruction or loop at a byte of the microcode. */
NeutronError nd_play(nd_runner *r, const nd_script *script,
                     NeutronError (*as_is)(nd_runner *r, uint32_t offset));

#endif
#endif
