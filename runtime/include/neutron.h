/* The driver's public contract: NXP's names, our implementation.
 *
 * Buffers handed in are 16-byte aligned. Only neutronModelPrepare* and neutronSetThreads allocate.
 * Every function returns NEUTRON_NONE (0) or an error word; neutronErrorString() turns it into a
 * sentence. A handle that was given back is refused from then on, and of two calls that need a
 * model for themselves at once, one is refused with BUSY; where there are no threads, a handle is
 * the address of its context and is refused as long as that memory is left alone.
 */
#ifndef NEUTRON_H
#define NEUTRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "generated/event.h"

#if defined(_WIN32)
#define NEUTRON_API __declspec(dllexport)
#else
#define NEUTRON_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t NeutronError;
typedef struct NeutronModel *NeutronModelHandle;

/* Error word: bits 0-2 component, 3-7 category, 8-30 code. */
#define NEUTRON_ERROR(component, category, code) \
    ((NeutronError)((component) | ((category) << 3) | ((code) << 8)))
#define NEUTRON_COMPONENT(error) ((error) & 7)
#define NEUTRON_CATEGORY(error) (((error) >> 3) & 31)
#define NEUTRON_CODE(error) (((error) >> 8) & 0x7FFFFF)

enum {
    NEUTRON_COMPONENT_LIBRARY = 1,
    NEUTRON_COMPONENT_FIRMWARE = 2,
    NEUTRON_COMPONENT_DRIVER = 3
};

enum {
    NEUTRON_FIRMWARE_GENERIC = 1,
    NEUTRON_FIRMWARE_MICROCODE,
    NEUTRON_FIRMWARE_BUFFER_OVERFLOW,
    NEUTRON_FIRMWARE_NULL_POINTER,
    NEUTRON_FIRMWARE_INTERRUPT,
    NEUTRON_FIRMWARE_DATA_MOVER
};

enum {
    NEUTRON_DRIVER_GENERIC = 1,
    NEUTRON_DRIVER_UNSUPPORTED,
    NEUTRON_DRIVER_MICROCODE,
    NEUTRON_DRIVER_INVALID,
    NEUTRON_DRIVER_BAD_HANDLE,
    NEUTRON_DRIVER_NO_MEMORY,
    NEUTRON_DRIVER_INTERNAL_FAULT,
    NEUTRON_DRIVER_UNKNOWN_ARCHITECTURE,
    NEUTRON_DRIVER_TRACE_NOT_RUN,
    NEUTRON_DRIVER_TIMEOUT
};

#define NEUTRON_NONE 0

typedef struct {
    const void *microcode;
    const void *weights;
    const void *kernels;
    uint32_t timeoutSeconds; /* of a run; 0: no limit; or NEUTRON_TIMEOUT_DEFAULT */
} NeutronModelConfig;

/* What OPENNEUTRON_TIMEOUT says, 60 seconds without it: for files of unknown origin. */
#define NEUTRON_TIMEOUT_DEFAULT UINT32_MAX

/* Real sizes of the blocks and of the caller's buffers: what NXP's structs do not carry and
 * validation needs. */
typedef struct {
    size_t microcode;
    size_t weights;
    size_t kernels;
    size_t scratch;  /* size of the scratch that every run will provide */
    size_t prefetch; /* size of NeutronDataConfig.scratchWeights */
} NeutronModelSizes;

typedef struct {
    const void **inputs;
    void **outputs; /* outputs[nOut + 3]: the graph's outputs, then scratch, profile, debug; read
                       only where the microcode declares a size, the last two may be NULL */
    void *scratch;  /* never read: NXP's callers leave in it what memory held before */
    void *scratchWeights; /* read only when the microcode declares prefetch */
} NeutronDataConfig;

typedef struct {
    uint32_t traceConfig; /* bit 0: one line per kernel call */
    char *traceBuffer;
    size_t traceBufferSize;
} NeutronTraceConfig;

typedef struct {
    void (*copy)(void *dst, void *src, uint32_t size, uint32_t channel);
    void (*wait)(uint32_t channel);
} NeutronConfig;

/* One input or output as the tensor table declares it. */
typedef struct {
    uint8_t isOutput, index, dtype, rank;
    uint32_t bytes;
    int32_t zeroPoint;
    float scale;
    uint32_t dims[8];
} NeutronTensorInfo;

/* What prepare found in the header and identity block. */
typedef struct {
    char target[17];
    uint32_t formatVersion, converterVersion;
    uint32_t inputs, outputs;
    uint32_t scratchBytes, prefetchBytes, profileBytes, debugBytes, tcmBytes, stateBytes;
    uint32_t calls; /* in one run, those that are clipped to no rows included */
    bool profiling;
} NeutronModelInfo;

NEUTRON_API NeutronError neutronInit(void);
NEUTRON_API NeutronError neutronDeinit(void);
NEUTRON_API const char *neutronGetSdkVersion(void);
NEUTRON_API const char *neutronErrorString(NeutronError error);
/* Name of an error word, such as "CHECKSUM"; NULL when there is no such error. neutron_errors.h has
 * the constants. An image built without messages has neither names nor sentences: both are "". */
NEUTRON_API const char *neutronErrorName(NeutronError error);
/* The error word in row `index` of the table of all errors, for listings; false past the end. */
NEUTRON_API bool neutronErrorAt(uint32_t index, NeutronError *error);
/* Names the byte offset or value behind the last error of this handle; "" when there is nothing to
 * add. */
NEUTRON_API const char *neutronModelErrorDetail(NeutronModelHandle model);

/* Room for the context of any model without TCM (Neutron-C) and without state, for static
 * allocation; the exact figure is neutronGetModelContextSize(). It has 24 pointers. */
#define NEUTRON_CONTEXT_BYTES (624 + 24 * sizeof(void *))
/* Bytes of caller memory that neutronModelPrepareIn needs for this microcode; 0 when it is not open
 * microcode. */
NEUTRON_API size_t neutronGetModelContextSize(const void *microcode, size_t size);
/* The least of them, for a model that passes neutronModelCheck(). */
NEUTRON_API NeutronError neutronGetLeastContextSize(const NeutronModelConfig *config,
                                                    const NeutronModelSizes *sizes, size_t *bytes);
/* Trusts its caller about the sizes (NXP's signature has none): use the checked form for anything
 * read from a file. */
NEUTRON_API NeutronError neutronModelPrepare(const NeutronModelConfig *config,
                                             NeutronModelHandle *handle);
NEUTRON_API NeutronError neutronModelPrepareChecked(const NeutronModelConfig *config,
                                                    const NeutronModelSizes *sizes,
                                                    NeutronModelHandle *handle);
/* Validates as the checked form does, prepares nothing, and writes one sentence of detail (byte
 * offset, value, reason) into `detail`: how a caller whose prepare failed, and who therefore has no
 * handle, learns what was wrong. Pass NULL, 0 for the error word alone. */
NEUTRON_API NeutronError neutronModelCheck(const NeutronModelConfig *config,
                                           const NeutronModelSizes *sizes, char *detail,
                                           size_t detailSize);
/* The checked form in caller memory of neutronGetModelContextSize() bytes, 16-byte aligned: no
 * allocation at all. In less memory, down to neutronGetLeastContextSize(), coded constants are
 * decoded while the model runs instead of once: those of a call before it, or, where there is no
 * room for them, of as many blocks of its output channels at a time as there is room for. Results
 * are the same bytes. Models that the driver allocates take their choice from OPENNEUTRON_WINDOW.
 */
NEUTRON_API NeutronError neutronModelPrepareIn(void *context, size_t contextSize,
                                               const NeutronModelConfig *config,
                                               const NeutronModelSizes *sizes,
                                               NeutronModelHandle *handle);
/* The same for a payload that is part of the program, and as safe as that: its checksum is not
 * computed, everything else is validated. neutron_linked.h is the short way to such a model. */
NEUTRON_API NeutronError neutronModelPrepareLinked(void *context, size_t contextSize,
                                                   const NeutronModelConfig *config,
                                                   const NeutronModelSizes *sizes,
                                                   NeutronModelHandle *handle);
NEUTRON_API NeutronError neutronModelUnprepare(NeutronModelHandle handle);
NEUTRON_API NeutronError neutronModelGetInfo(NeutronModelHandle handle, NeutronModelInfo *info);
NEUTRON_API NeutronError neutronModelGetTensor(NeutronModelHandle handle, uint32_t row,
                                               NeutronTensorInfo *info);

/* Checks the buffers of a run ahead of it; nothing needs it. Buffers of a run do not overlap, and
 * it clears those it writes before it starts. */
NEUTRON_API NeutronError neutronDataSetup(NeutronModelHandle handle, NeutronDataConfig *data);
NEUTRON_API NeutronError neutronRunBlocking(NeutronModelHandle handle,
                                            const NeutronDataConfig *data);
/* Run many samples, each on whichever of several handles of a model is free, every handle on a
 * thread of its own, the caller's among them. data[h * count + s] are the buffers of sample s on
 * handle h. No sample is begun after one that failed; `done` says how many went well before the
 * first that did, whose error this is. Hosts only. */
NEUTRON_API NeutronError neutronRunEach(const NeutronModelHandle *handles, size_t count_of_handles,
                                        const NeutronDataConfig *data, size_t count, size_t *done);
/* Starts a run on a thread of its own; `data` is copied, the arrays and buffers it points to must
 * live until neutronWait. Where there are no threads (bare metal) the run happens inside the first
 * neutronIsReady or neutronWait. One run per handle at a time; several handles may run at once. */
NEUTRON_API NeutronError neutronRunNonBlocking(NeutronModelHandle handle,
                                               const NeutronDataConfig *data);
NEUTRON_API NeutronError neutronWait(NeutronModelHandle handle, const NeutronDataConfig *data);
NEUTRON_API NeutronError neutronIsReady(NeutronModelHandle handle, bool *ready);
/* Let runs of this model compute independent rows of large calls on up to `threads` threads, 1 to
 * 16; results are the same bytes whatever the number. The threads are made here and end with the
 * model. Models that the driver allocates start with what the environment's OPENNEUTRON_THREADS
 * says, others with 1. Bare metal takes 1 only. */
NEUTRON_API NeutronError neutronSetThreads(NeutronModelHandle handle, uint32_t threads);
NEUTRON_API NeutronError neutronSetConfig(const NeutronConfig *config);
NEUTRON_API NeutronError neutronSetTrace(NeutronModelHandle handle,
                                         const NeutronTraceConfig *trace);
NEUTRON_API NeutronError neutronGetTrace(NeutronModelHandle handle, const char **text,
                                         size_t *size);
/* State: what a model keeps from run to run (variables, the memory of recurrent layers), in its
 * context. Prepare gives it its first contents, every handle has its own. Reset gives it its first
 * contents again; get and set save and restore it whole. Size 0 where a model keeps nothing. */
NEUTRON_API NeutronError neutronStateReset(NeutronModelHandle handle);
NEUTRON_API NeutronError neutronStateGet(NeutronModelHandle handle, const void **bytes,
                                         size_t *size);
NEUTRON_API NeutronError neutronStateSet(NeutronModelHandle handle, const void *bytes, size_t size);
/* Keep the state in the caller's memory from now on, as it is there: `size` bytes, 16-byte aligned,
 * which live as long as the handle. Handles of models with the same state may have one in common,
 * as the methods of one program do, if no two of them run at once. */
NEUTRON_API NeutronError neutronStatePlace(NeutronModelHandle handle, void *memory, size_t size);
NEUTRON_API NeutronError neutronSuspend(void);
NEUTRON_API NeutronError neutronResume(void);
NEUTRON_API void *neutronMemAlloc(size_t alignment, size_t size);
NEUTRON_API void neutronMemFree(void *pointer);

/* Called for each executed call and copy when set; `context` is handed back. No cost when NULL. */
typedef void (*NeutronEventSink)(void *context, const NeutronEvent *event);
NEUTRON_API NeutronError neutronSetEventSink(NeutronModelHandle handle, NeutronEventSink sink,
                                             void *context);
/* The model's TCM as it is now, for debuggers: an event sink sees what each call left there. Size 0
 * without TCM. */
NEUTRON_API NeutronError neutronGetTcm(NeutronModelHandle handle, const void **bytes, size_t *size);
/* Simulated cycles of the last run: its own timeline of array, copy engine and waits. 0 in an image
 * built without the cycle model. */
NEUTRON_API NeutronError neutronGetCycles(NeutronModelHandle handle, uint64_t *cycles);
/* Runs begin with scratch, prefetch, TCM and outputs full of this byte, 0 unless set: tests choose
 * one that shows when a model reads what it never wrote. */
NEUTRON_API NeutronError neutronSetFill(NeutronModelHandle handle, uint8_t byte);

/* Name of a kernel id, NULL when this image does not hold it. */
NEUTRON_API const char *neutronKernelName(uint32_t kernel);

#ifdef __cplusplus
}
#endif
#endif
