/* The driver's internal types and functions: what validation found, and what a run needs. */
#ifndef ND_MODEL_H
#define ND_MODEL_H

#include <stdatomic.h>

#include "machine.h"
#include "neutron_errors.h"
#include "nk.h"
#include "platform.h"
#include "storage.h"
#include "text.h"
#include "timeline.h"

/* Microcode as validated. Records are copied out of it, never pointed into, but for kernel
 * parameters. */
typedef struct {
    const uint8_t *microcode, *kernels;
    const uint8_t *stored;  /* the weights block */
    const uint8_t *weights; /* region WEIGHTS: that block, or its sections once they are decoded */
    NeutronHeaderRecord header;
    NeutronIdentityRecord identity;
    const nm_target *target;
    uint32_t inputs, outputs, scratch_bytes, prefetch_bytes, profile_bytes, debug_bytes;
    uint64_t work; /* of a run, as work.c counts it */
} nd_program;

/* Words of the longest instruction: a call with all operands and parameters. */
enum {
    ND_MAX_WORDS = (sizeof(NeutronInstructionRecord) + sizeof(NeutronCallRecord) +
                    NEUTRON_MAX_OPERANDS * sizeof(NeutronOperandRecord)) /
        sizeof(uint32_t) +
    NEUTRON_MAX_PARAMS
};

/* One instruction: `bytes` of the microcode from `offset` on, and its plain words. */
typedef struct {
    uint32_t offset, bytes, words;
    uint8_t opcode, operands;
    const uint32_t *plain; /* in the microcode, or in memory of the caller where it is packed */
} nd_instruction;

/* The buffers of a run. */
typedef struct {
    const void **inputs;
    void **outputs;
    uint8_t *scratch, *prefetch, *tcm, *state;
} nd_buffers;

/* How a kernel is called, from the generated table. */
typedef struct {
    const char *name; /* NULL: no such kernel */
    uint8_t abi, operands, optional, output, written, params, formula;
    uint8_t moved; /* mask of operands that are activations */
    uint8_t dense; /* computes its whole output, whatever rows it is called for */
    int8_t input, weights, kernel_h, kernel_w,
        groups; /* operands and parameter words; -1: it has none */
} nd_kernel_info;

/* Longest sentence of detail: a kernel's reason of about 100 characters with its place. */
enum { ND_DETAIL_BYTES = 200 };

enum { ND_PROFILE_RECORD_BYTES = 16 }; /* a start and a stop point of NXP's profile buffer */

/* CLAIMED: a blocking run, a start or a change of settings. RUNNING: a non-blocking run. JOINING: a
 * thread waits for that run. */
enum { ND_IDLE, ND_CLAIMED, ND_RUNNING, ND_JOINING };

typedef struct nd_script nd_script; /* host/driver/script.h */
typedef struct nd_pool nd_pool;     /* host/driver/thread_pool.h */

struct NeutronModel {
    NeutronModelHandle handle;
    uint32_t live;           /* without threads: marks a prepared model */
    uint64_t reserved_bytes; /* what nd_reserve_memory counted, when owned */
    uint8_t owned;           /* 1: the context came from neutronMemAlloc */
    uint8_t fill;            /* what memory holds when a run begins */
    atomic_bool finished;    /* the non-blocking run has left its result */
    nd_program program;
    uint32_t timeout_seconds;
    uint8_t *tcm;
    uint8_t *window;                    /* constants of some calls; NULL: all are decoded */
    uint32_t window_bytes, window_used; /* 0 used: those of one call, which has all of it */
    const void *window_call;            /* that call; NULL: none */
    uint8_t *variables; /* the state region, which keeps its contents between runs */
    nd_timeline timeline;
    uint64_t cycles;
    NeutronEventSink sink;
    void *sink_context;
    uint32_t trace_lines, traced;
    nd_text trace;
    nd_text detail;
    char detail_text[ND_DETAIL_BYTES];
    nd_pool *pool;     /* NULL: a run takes one thread */
    nd_script *script; /* NULL: runs follow the microcode */
    nd_thread thread;
    NeutronDataConfig data;
    atomic_int state; /* one of ND_IDLE … ND_JOINING */
    NeutronError result;
};

/* handles.c: looks up handles. A model is entered before it is read and left afterwards; it cannot
 * be freed in between. */
NeutronModelHandle nd_handle_make(struct NeutronModel *model);
NeutronError nd_enter(NeutronModelHandle handle, struct NeutronModel **model);
void nd_leave(struct NeutronModel *model);
/* Invalidate the handle, or BUSY when another thread has entered the model. */
NeutronError nd_handle_end(struct NeutronModel *model);
/* Enter an idle model and lock it against runs and changes of settings, or BUSY. */
NeutronError nd_claim(NeutronModelHandle handle, struct NeutronModel **model);
void nd_release(struct NeutronModel *model);
bool nd_change_state(struct NeutronModel *model, int from, int to);

/* limits.c: limits on time and memory, which the environment may change. */
NeutronError nd_timeout(const NeutronModelConfig *config, uint32_t *seconds);
NeutronError nd_check_memory(const nd_program *program, nd_text *detail);
/* Count the memory of a prepared model against the limit of the process, or MEMORY_LIMIT; and
 * subtract it again. */
NeutronError nd_reserve_memory(const nd_program *program, uint64_t *bytes);
/* The size of the window for constants of a model that the driver allocates: OPENNEUTRON_WINDOW, or
 * all their bytes without it. */
NeutronError nd_window_wanted(const nd_program *program, uint32_t *bytes);
void nd_release_memory(uint64_t bytes);

/* kernel_info.c: look up a kernel in the generated table, false when it is not there; whether this
 * image links it. */
bool nd_kernel(uint32_t kernel, nd_kernel_info *info);
bool nd_kernel_linked(uint32_t kernel);

/* container.c: header, checksum unless the payload is `linked` into the program, identity, tensor
 * table. */
NeutronError nd_check_container(nd_program *program, const NeutronModelConfig *config,
                                const NeutronModelSizes *sizes, bool linked, nd_text *detail);
NeutronTensorRecord nd_tensor(const nd_program *program, uint32_t row);
/* checksum.c */
NeutronError nd_check_checksum(const nd_program *program, nd_text *detail);
/* state.c: a row of the state table; rows inside their region and the weights; first contents of a
 * handle's state. */
NeutronStateRecord nd_state(const nd_program *program, uint32_t row);
NeutronError nd_check_states(const nd_program *program, nd_text *detail);
void nd_reset_state(struct NeutronModel *model);
/* kernels_block.c: the block lists what is called, one bit per kernel id. */
NeutronError nd_check_kernels_block(const nd_program *program, const uint32_t *called,
                                    nd_text *detail);
/* validate.c: all of it; after NEUTRON_NONE no run leaves the declared buffers. */
NeutronError nd_validate(nd_program *program, const NeutronModelConfig *config,
                         const NeutronModelSizes *sizes, bool linked, nd_text *detail);
/* validate_call.c, validate_copy.c */
NeutronError nd_check_call(const nd_program *program, const nd_instruction *at, uint32_t *called,
                           uint64_t *work, nd_text *detail);
NeutronError nd_check_copy(const nd_program *program, const nd_instruction *at, uint64_t *work,
                           nd_text *detail);
NeutronError nd_check_wait(const nd_instruction *at, nd_text *detail);

/* sections.c: the table; then the streams, into memory of plain_bytes or, with NULL, only checked.
 */
NeutronError nd_check_sections(const nd_program *program, nd_text *detail);
NeutronError nd_decode_sections(const nd_program *program, uint8_t *to, nd_text *detail);
/* Iterate over sections: before the first one; advance, false where the next is malformed. */
nd_section nd_no_section(const nd_program *program);
bool nd_next_section(const nd_program *program, nd_section *section);
/* Stored bytes for a range of region WEIGHTS, proportional for a part of a section; 0 where there
 * are no sections. `section` caches the last lookup. */
uint32_t nd_stored_bytes(const nd_program *program, nd_section *section, uint32_t offset,
                         uint64_t bytes);
/* The offset and size of a call's weights in region WEIGHTS; 0 where they are elsewhere. */
uint64_t nd_loaded_weights(const nd_instruction *at, const nd_kernel_info *info,
                           const nk_call *call, uint32_t *offset);
/* The section that contains byte `offset` of region WEIGHTS; false behind the last one. */
bool nd_section_at(const nd_program *program, uint32_t offset, nd_section *section);
/* window.c: the smallest window that constants can be decoded in while the model runs, UINT32_MAX
 * where they cannot; a call's operands in it, false where it must be made in blocks; bytes of
 * region WEIGHTS that are copied. */
uint32_t nd_least_window(const nd_program *program);
bool nd_place_constants(struct NeutronModel *model, const nd_instruction *at, nk_call *call);
void nd_read_constants(struct NeutronModel *model, uint32_t offset, uint32_t bytes, uint8_t *to);
/* blocks.c: bytes of the window that one block of a checked call's output channels needs,
 * UINT32_MAX where it cannot be made in blocks; `call` is changed to one of them. */
typedef struct {
    uint32_t weights, table; /* bytes in region WEIGHTS */
    uint32_t channels, units, block_bytes;
    uint32_t columns, padded; /* of the table */
    uint32_t next, at_once;   /* blocks */
    int32_t row0, row1;
} nd_blocks;
uint32_t nd_block_bytes(const nd_program *program, const nd_instruction *at,
                        const nd_kernel_info *info, nk_call *call);
/* A call in as many blocks at once as the window holds: `call` becomes that for the next ones, its
 * constants decoded; false after the last. It has to be decoded again afterwards. */
void nd_begin_blocks(const struct NeutronModel *model, const nd_instruction *at,
                     const nd_kernel_info *info, const nk_call *call, nd_blocks *blocks);
bool nd_next_blocks(const struct NeutronModel *model, const nd_kernel_info *info, nd_blocks *blocks,
                    nk_call *call);
/* Bytes of region WEIGHTS. */
uint32_t nd_weights_bytes(const nd_program *program);

/* decode.c: conversion only, what it reads has been validated (or is about to be). */
/* The instruction at `offset`, its words in `room` where they are packed; no bytes where it leaves
 * the code. */
nd_instruction nd_instruction_at(const nd_program *program, uint32_t offset,
                                 uint32_t room[ND_MAX_WORDS]);
/* Copy the body of an instruction, which follows its first word. */
void nd_body(const nd_instruction *at, void *record, size_t size);
void nd_read(const nd_program *program, uint32_t offset, void *record, size_t size);
NeutronOperandRecord nd_operand_record(const nd_instruction *at, uint32_t operand);
/* Size of a region (of input or output `index`); 0 when there is no such region. */
uint64_t nd_region_bytes(const nd_program *program, uint8_t region, uint8_t index);
uint8_t *nd_region_base(const nd_program *program, const nd_buffers *buffers, uint8_t region,
                        uint8_t index);
/* An operand in memory from `base` on; NULL: its data is nowhere. */
nk_operand nd_operand_of(const NeutronOperandRecord *record, uint8_t *base);
/* `buffers` NULL leaves data pointers NULL, as NK_CHECK expects them. */
void nd_decode_call(const nd_program *program, const nd_buffers *buffers, const nd_instruction *at,
                    nk_call *call, NeutronCallRecord *record);
/* Output rows of a call in iteration i of its loop, clipped to [0, height). */
void nd_clip_rows(const NeutronCallRecord *record, uint32_t iteration, uint32_t height,
                  int32_t *row0, int32_t *row1);

/* work.c: multiplications or bytes moved, for one output row of every image and for a call of
 * `rows` rows. Bounds for time limits, not costs: those are the cycle model's. */
uint64_t nd_row_work(const nk_call *call, const nd_kernel_info *info);
uint64_t nd_call_work(const nk_call *call, const nd_kernel_info *info, uint32_t rows);
/* Multiplications of a call with `rows` rows, and bytes of its operands: all of the constants, a
 * proportional part of the activations. */
uint64_t nd_call_macs(const nk_call *call, const nd_kernel_info *info, uint32_t rows);
uint64_t nd_call_bytes(const nk_call *call, const nd_kernel_info *info, uint32_t rows);

/* buffers.c: NULL and alignment; fills `buffers`. */
NeutronError nd_check_buffers(struct NeutronModel *model, const NeutronDataConfig *data,
                              nd_buffers *buffers);
/* Fill scratch, prefetch, TCM and outputs with the model's fill byte, so that microcode that reads
 * unwritten memory learns nothing of earlier contents. */
void nd_clear_buffers(const struct NeutronModel *model, const nd_buffers *buffers);
/* async.c: wait for the run in flight. */
NeutronError nd_wait(struct NeutronModel *model, const NeutronDataConfig *data);
/* run.c */
NeutronError nd_run(struct NeutronModel *model, const NeutronDataConfig *data);
/* observe.c: sink, trace and profile of one executed call or copy. */
typedef struct {
    uint8_t *at; /* next record; NULL without profiling */
    uint32_t left;
} nd_profile;
void nd_observe(struct NeutronModel *model, nd_profile *profile, const NeutronEvent *event);
/* config.c */
bool nd_suspended(void);
NeutronConfig nd_config(void);

#endif
