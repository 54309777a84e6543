#include <string.h>

#include "model.h"

/* Half a record of NXP's profile buffer; opCode 6 marks kernel calls, and only those are recorded:
 * the buffer has room for one record per call. Times are the low 32 bits of simulated cycles. */
typedef struct {
    uint8_t event, opcode, function, clock;
    uint32_t time;
} profile_point;

enum { POINT_START = 1, POINT_STOP = 2, OPCODE_KERNEL = 6, CLOCK_CYCLES = 0 };

static void profile_event(nd_profile *profile, const NeutronEvent *event) {
    const profile_point points[2] = {
        {POINT_START, OPCODE_KERNEL, (uint8_t)event->kernel, CLOCK_CYCLES, (uint32_t)event->start},
        {POINT_STOP, OPCODE_KERNEL, (uint8_t)event->kernel, CLOCK_CYCLES, (uint32_t)event->end},
    };
    if (event->opcode != NEUTRON_OPCODE_CALL || profile->at == NULL ||
        profile->left < sizeof points)
        return;
    memcpy(profile->at, points, sizeof points);
    profile->at += sizeof points;
    profile->left -= (uint32_t)sizeof points;
}

static void trace_event(struct NeutronModel *model, const NeutronEvent *event) {
    if (!model->trace_lines || event->opcode != NEUTRON_OPCODE_CALL) return;
    const char *name = neutronKernelName(event->kernel);
    nd_text_append(&model->trace, "%s node %u rows %d-%d cycles %llu-%llu\n", name ? name : "?",
                   event->tag, event->firstRow, event->firstRow + (int32_t)event->rows - 1,
                   (unsigned long long)event->start, (unsigned long long)event->end);
}

void nd_observe(struct NeutronModel *model, nd_profile *profile, const NeutronEvent *event) {
    profile_event(profile, event);
    trace_event(model, event);
    if (model->sink) model->sink(model->sink_context, event);
}

static NeutronError set_trace(struct NeutronModel *model, const NeutronTraceConfig *trace) {
    if (trace == NULL || (trace->traceBuffer == NULL && trace->traceBufferSize))
        return NEUTRON_ERROR_ARGUMENT_NULL;
    if (trace->traceConfig & ~1u) return NEUTRON_ERROR_TRACE_CONFIG;
    model->trace_lines = trace->traceConfig & 1u;
    model->trace.text = trace->traceBuffer;
    model->trace.size = trace->traceBufferSize;
    model->traced = 0;
    nd_text_reset(&model->trace);
    return NEUTRON_NONE;
}

NeutronError neutronSetTrace(NeutronModelHandle handle, const NeutronTraceConfig *trace) {
    struct NeutronModel *model;
    NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = set_trace(model, trace);
    nd_release(model);
    return error;
}

static NeutronError get_trace(const struct NeutronModel *model, const char **text, size_t *size) {
    if (text == NULL || size == NULL) return NEUTRON_ERROR_ARGUMENT_NULL;
    if (!model->traced || model->trace.size == 0) return NEUTRON_ERROR_TRACE_NOT_RUN;
    *text = model->trace.text;
    *size = model->trace.used;
    return NEUTRON_NONE;
}

NeutronError neutronGetTrace(NeutronModelHandle handle, const char **text, size_t *size) {
    struct NeutronModel *model;
    NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = get_trace(model, text, size);
    nd_release(model);
    return error;
}

NeutronError neutronSetEventSink(NeutronModelHandle handle, NeutronEventSink sink, void *context) {
    struct NeutronModel *model;
    const NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    model->sink = sink;
    model->sink_context = context;
    nd_release(model);
    return NEUTRON_NONE;
}
