/* Every error word of driver and firmware: one row gives the constant, its name and its sentence.
 */
#ifndef NEUTRON_ERRORS_H
#define NEUTRON_ERRORS_H

#include "neutron.h"

/* X(name, component, category, code, sentence). Codes are never reused: they are part of the
 * interface. */
#define NEUTRON_ERROR_TABLE(X) \
    X(ARGUMENT_NULL, DRIVER, DRIVER_INVALID, 1, "a required pointer is NULL") \
    X(ALIGNMENT, DRIVER, DRIVER_INVALID, 2, "a buffer does not start at a multiple of 16 bytes") \
    X(BUFFER_TOO_SMALL, DRIVER, DRIVER_INVALID, 3, \
      "a buffer is smaller than the microcode declares") \
    X(ROW_RANGE, DRIVER, DRIVER_INVALID, 4, "the tensor table has no such row") \
    X(SUSPENDED, DRIVER, DRIVER_INVALID, 5, "the driver is suspended; call neutronResume first") \
    X(BUSY, DRIVER, DRIVER_INVALID, 6, \
      "a run of this model is still in flight; call neutronWait first") \
    X(NOT_STARTED, DRIVER, DRIVER_INVALID, 7, "no run of this model is in flight") \
    X(DATA_CHANGED, DRIVER, DRIVER_INVALID, 8, \
      "neutronWait was given other buffers than the run was started with") \
    X(TRACE_CONFIG, DRIVER, DRIVER_INVALID, 9, \
      "traceConfig has bits without a meaning; bit 0 asks for a line per call") \
    X(THREADS, DRIVER, DRIVER_INVALID, 10, \
      "the number of threads, or what OPENNEUTRON_THREADS says, is not from 1 to 16 (1 on bare " \
      "metal)") \
    X(STATE_SIZE, DRIVER, DRIVER_INVALID, 11, \
      "the state given has another size than the model's; save it with neutronStateGet") \
    X(TIMEOUT_VALUE, DRIVER, DRIVER_INVALID, 12, \
      "OPENNEUTRON_TIMEOUT is not a number of seconds; 0 lifts the limit") \
    X(MEMORY_VALUE, DRIVER, DRIVER_INVALID, 13, \
      "OPENNEUTRON_MEMORY is not a number of bytes; 0 lifts the limit") \
    X(WINDOW_VALUE, DRIVER, DRIVER_INVALID, 14, \
      "OPENNEUTRON_WINDOW is not a number of bytes; 0 takes as few as possible") \
    X(NULL_HANDLE, DRIVER, DRIVER_BAD_HANDLE, 1, "the model handle is NULL") \
    X(STALE_HANDLE, DRIVER, DRIVER_BAD_HANDLE, 2, "the handle is not a prepared model") \
    X(NO_MEMORY, DRIVER, DRIVER_NO_MEMORY, 1, "the model's context could not be allocated") \
    X(CONTEXT_TOO_SMALL, DRIVER, DRIVER_NO_MEMORY, 2, \
      "the context is smaller than neutronGetLeastContextSize() asks for") \
    X(MEMORY_LIMIT, DRIVER, DRIVER_NO_MEMORY, 3, \
      "the model needs more memory than its target has or a host grants; OPENNEUTRON_MEMORY=0 " \
      "lifts the limit") \
    X(NO_THREAD, DRIVER, DRIVER_INTERNAL_FAULT, 1, \
      "the system refused a thread, or memory for one") \
    X(TRACE_NOT_RUN, DRIVER, DRIVER_TRACE_NOT_RUN, 1, \
      "there is no trace: set a buffer with neutronSetTrace and run") \
    X(TIMEOUT, DRIVER, DRIVER_TIMEOUT, 1, \
      "the run took too long and was stopped; OPENNEUTRON_TIMEOUT or timeoutSeconds allow more " \
      "seconds, 0 any number") \
    X(MAGIC, DRIVER, DRIVER_MICROCODE, 1, "the block is not Neutron microcode (wrong magic)") \
    X(OTHER_CONVERTER, DRIVER, DRIVER_UNSUPPORTED, 1, \
      "the microcode was made by NXP's converter or another one; this driver runs open " \
      "microcode: compile again with " \
      "--converter open, or run the file with NXP's runtime") \
    X(FORMAT_VERSION, DRIVER, DRIVER_UNSUPPORTED, 2, \
      "the microcode has another format version than this driver; compile the model again") \
    X(KERNEL_MISSING, DRIVER, DRIVER_UNSUPPORTED, 3, \
      "the microcode calls a kernel that this image does not hold; link its selection or compile " \
      "with a matching " \
      "version") \
    X(KERNEL_ABI, DRIVER, DRIVER_UNSUPPORTED, 4, \
      "the microcode calls a kernel with another calling convention than this image has; compile " \
      "the model again") \
    X(UNKNOWN_TARGET, DRIVER, DRIVER_UNKNOWN_ARCHITECTURE, 1, \
      "the microcode is for a target this driver does not know") \
    X(TARGET_GEOMETRY, DRIVER, DRIVER_UNKNOWN_ARCHITECTURE, 2, \
      "the microcode was made for another array than its target has; compile the model again") \
    X(CHECKSUM, DRIVER, DRIVER_MICROCODE, 2, \
      "the checksum does not match: the file is damaged or was changed") \
    X(TRUNCATED, DRIVER, DRIVER_MICROCODE, 3, "a block is shorter than the microcode declares") \
    X(HEADER, DRIVER, DRIVER_MICROCODE, 4, "the microcode's header contradicts itself") \
    X(TENSOR_TABLE, DRIVER, DRIVER_MICROCODE, 5, "the tensor table is malformed") \
    X(STATE_TABLE, DRIVER, DRIVER_MICROCODE, 14, "the state table is malformed") \
    X(SECTION_TABLE, DRIVER, DRIVER_MICROCODE, 15, \
      "the table of the weights block's sections is malformed") \
    X(WEIGHTS_CODE, DRIVER, DRIVER_MICROCODE, 16, "coded weights are malformed") \
    X(KERNELS_BLOCK, DRIVER, DRIVER_MICROCODE, 6, \
      "the kernels block does not list the kernels that are called") \
    X(INSTRUCTION, DRIVER, DRIVER_MICROCODE, 7, "an instruction is malformed") \
    X(LOOP, DRIVER, DRIVER_MICROCODE, 8, "a loop is malformed") \
    X(CALL_COUNT, DRIVER, DRIVER_MICROCODE, 9, \
      "the number of kernel calls differs from the header or is too large") \
    X(OPERAND, DRIVER, DRIVER_MICROCODE, 10, "an operand of a kernel call is malformed") \
    X(ADDRESS, DRIVER, DRIVER_MICROCODE, 11, "an address leaves its region") \
    X(WRITE_PROTECTED, DRIVER, DRIVER_MICROCODE, 12, \
      "an instruction writes where only reading is allowed") \
    X(COPY, DRIVER, DRIVER_MICROCODE, 13, "a copy or wait is malformed") \
    X(KERNEL_REFUSED, FIRMWARE, FIRMWARE_MICROCODE, 1, \
      "a kernel refused its operands or parameters") \
    X(KERNEL_FAILED, FIRMWARE, FIRMWARE_GENERIC, 1, "a kernel failed while running") \
    X(INDEX, FIRMWARE, FIRMWARE_GENERIC, 2, "a position or index lies outside its tensor")

#define NEUTRON_ERROR_CONSTANT(name, component, category, code, sentence) \
    NEUTRON_ERROR_##name = NEUTRON_ERROR(NEUTRON_COMPONENT_##component, NEUTRON_##category, code),
enum { NEUTRON_ERROR_TABLE(NEUTRON_ERROR_CONSTANT) };
#undef NEUTRON_ERROR_CONSTANT

#endif
