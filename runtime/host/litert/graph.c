#include "graph.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, BLOCKS = 3, DETAIL_BYTES = 256 };

/* An input or output: the interpreter's tensor, and memory of our own for when its memory is not
 * aligned or, because nobody reads it, not there. */
typedef struct {
    int tensor;
    size_t bytes;
    void *own;
} port;

struct lr_graph {
    NeutronModelHandle model;
    NeutronModelInfo info;
    void *blocks[BLOCKS]; /* copies of those that are not aligned in the file */
    port *ports;          /* inputs, then outputs */
    const void **inputs;
    void **outputs; /* and behind them scratch, profile, debug */
    void *prefetch;
};

static int type_of(uint8_t dtype) {
    static const int types[] = {kTfLiteInt8,  kTfLiteUInt8,   kTfLiteInt16, kTfLiteInt32,
                                kTfLiteInt64, kTfLiteFloat32, kTfLiteBool};
    return dtype < sizeof types / sizeof types[0] ? types[dtype] : 0;
}

/* NULL for an index that is none; an optional input has -1. */
static TfLiteTensor *tensor_of(const TfLiteContext *context, int index) {
    return index >= 0 && (size_t)index < context->tensors_size ? &context->tensors[index] : NULL;
}

static bool aligned(const void *data) { return (uintptr_t)data % ALIGNMENT == 0; }

static void *allocate(size_t size) { return size ? neutronMemAlloc(ALIGNMENT, size) : NULL; }

static TfLiteStatus refuse(TfLiteContext *context, NeutronError error, const char *detail) {
    context->ReportError(context, "NeutronGraph: %s%s%s", neutronErrorString(error),
                         *detail ? ": " : "", detail);
    return kTfLiteError;
}

/* The constant at the end of the inputs; a copy where it is not aligned. */
static const void *block_of(TfLiteContext *context, lr_graph *graph, const TfLiteNode *node,
                            int which, size_t *size) {
    const int index = node->inputs->data[node->inputs->size - BLOCKS + which];
    const TfLiteTensor *tensor = tensor_of(context, index);
    if (tensor == NULL || tensor->allocation_type != kTfLiteMmapRo || tensor->data == NULL) {
        context->ReportError(context, "NeutronGraph: input %d must be a constant",
                             node->inputs->size - BLOCKS + which);
        return NULL;
    }
    *size = tensor->bytes;
    if (aligned(tensor->data)) return tensor->data;
    graph->blocks[which] = allocate(tensor->bytes);
    if (graph->blocks[which] != NULL) memcpy(graph->blocks[which], tensor->data, tensor->bytes);
    return graph->blocks[which];
}

static TfLiteStatus prepare(TfLiteContext *context, lr_graph *graph, const TfLiteNode *node,
                            const lr_options *options) {
    const void *data[BLOCKS];
    size_t size[BLOCKS] = {0};
    char detail[DETAIL_BYTES] = "";
    if (node->inputs->size < BLOCKS) {
        context->ReportError(context, "NeutronGraph has %d inputs, it needs %d constants",
                             node->inputs->size, BLOCKS);
        return kTfLiteError;
    }
    for (int at = 0; at < BLOCKS; at++) {
        data[at] = block_of(context, graph, node, at, &size[at]);
        if (data[at] == NULL) return kTfLiteError;
    }
    const NeutronModelConfig config = {data[0], data[1], data[2], options->timeout};
    const NeutronModelSizes sizes = {size[0], size[1], size[2], UINT32_MAX, UINT32_MAX};
    NeutronError error = neutronModelPrepareChecked(&config, &sizes, &graph->model);
    if (error != NEUTRON_NONE) {
        (void)neutronModelCheck(&config, &sizes, detail, sizeof detail);
        return refuse(context, error, detail);
    }
    if (options->threads) error = neutronSetThreads(graph->model, options->threads);
    if (error == NEUTRON_NONE) error = neutronModelGetInfo(graph->model, &graph->info);
    return error == NEUTRON_NONE ? kTfLiteOk : refuse(context, error, "");
}

/* The tensor of a port must be what the microcode's table says. */
static TfLiteStatus add_port(TfLiteContext *context, lr_graph *graph, uint32_t row, int index) {
    NeutronTensorInfo expected;
    (void)neutronModelGetTensor(graph->model, row, &expected);
    const TfLiteTensor *tensor = tensor_of(context, index);
    if (tensor == NULL || tensor->type != type_of(expected.dtype) ||
        tensor->bytes != expected.bytes) {
        context->ReportError(
            context, "NeutronGraph: %s %u has %zu bytes of type %d, the microcode says %u of %d",
            expected.isOutput ? "output" : "input", expected.index,
            tensor == NULL ? (size_t)0 : tensor->bytes, tensor == NULL ? 0 : tensor->type,
            expected.bytes, type_of(expected.dtype));
        return kTfLiteError;
    }
    graph->ports[row] = (port){index, expected.bytes, NULL};
    return kTfLiteOk;
}

static TfLiteStatus add_ports(TfLiteContext *context, lr_graph *graph, const TfLiteNode *node) {
    const uint32_t inputs = graph->info.inputs, outputs = graph->info.outputs;
    if ((uint32_t)(node->inputs->size - BLOCKS) != inputs ||
        (uint32_t)node->outputs->size < outputs) {
        context->ReportError(context,
                             "NeutronGraph has %d inputs and %d outputs, its microcode %u and %u",
                             node->inputs->size - BLOCKS, node->outputs->size, inputs, outputs);
        return kTfLiteError;
    }
    graph->ports = calloc(inputs + outputs, sizeof *graph->ports);
    graph->inputs = calloc(inputs + 1, sizeof *graph->inputs);
    graph->outputs = calloc(outputs + 3, sizeof *graph->outputs);
    if (graph->ports == NULL || graph->inputs == NULL || graph->outputs == NULL)
        return kTfLiteError;
    for (uint32_t row = 0; row < inputs + outputs; row++) {
        const int index =
            row < inputs ? node->inputs->data[row] : node->outputs->data[row - inputs];
        if (add_port(context, graph, row, index) != kTfLiteOk) return kTfLiteError;
    }
    return kTfLiteOk;
}

/* Scratch has a tensor in the file, which the interpreter gives no memory because nobody reads it.
 */
static TfLiteStatus add_memory(TfLiteContext *context, lr_graph *graph) {
    const NeutronModelInfo *info = &graph->info;
    void **behind = graph->outputs + info->outputs;
    behind[0] = allocate(info->scratchBytes);
    behind[1] = allocate(info->profileBytes);
    graph->prefetch = allocate(info->prefetchBytes);
    if ((info->scratchBytes && behind[0] == NULL) || (info->profileBytes && behind[1] == NULL) ||
        (info->prefetchBytes && graph->prefetch == NULL)) {
        context->ReportError(context,
                             "NeutronGraph: no memory for %u bytes of scratch and %u of prefetch",
                             info->scratchBytes, info->prefetchBytes);
        return kTfLiteError;
    }
    return kTfLiteOk;
}

lr_graph *lr_graph_make(TfLiteContext *context, const TfLiteNode *node, const lr_options *options) {
    lr_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL) return NULL;
    if (prepare(context, graph, node, options) == kTfLiteOk &&
        add_ports(context, graph, node) == kTfLiteOk && add_memory(context, graph) == kTfLiteOk)
        return graph;
    lr_graph_free(graph);
    return NULL;
}

void lr_graph_free(lr_graph *graph) {
    if (graph == NULL) return;
    if (graph->model != NULL) (void)neutronModelUnprepare(graph->model);
    for (int at = 0; at < BLOCKS; at++) neutronMemFree(graph->blocks[at]);
    if (graph->outputs != NULL) {
        neutronMemFree(graph->outputs[graph->info.outputs]);
        neutronMemFree(graph->outputs[graph->info.outputs + 1]);
    }
    for (uint32_t row = 0; graph->ports != NULL && row < graph->info.inputs + graph->info.outputs;
         row++) {
        neutronMemFree(graph->ports[row].own);
    }
    neutronMemFree(graph->prefetch);
    free(graph->ports);
    free((void *)graph->inputs);
    free(graph->outputs);
    free(graph);
}

/* Where the driver reads or writes a port: in the tensor itself where that is aligned. */
static void *place(port *p, void *data) {
    if (data != NULL && aligned(data)) return data;
    if (p->own == NULL) p->own = allocate(p->bytes);
    return p->own;
}

static TfLiteTensor *tensor_at(TfLiteContext *context, const port *p) {
    TfLiteTensor *tensor = tensor_of(context, p->tensor);
    if (tensor != NULL && tensor->bytes == p->bytes) return tensor;
    context->ReportError(context,
                         "NeutronGraph: tensor %d was resized; compiled graphs have one "
                         "shape",
                         p->tensor);
    return NULL;
}

TfLiteStatus lr_graph_run(TfLiteContext *context, lr_graph *graph) {
    const uint32_t inputs = graph->info.inputs, outputs = graph->info.outputs;
    for (uint32_t row = 0; row < inputs + outputs; row++) {
        port *p = &graph->ports[row];
        TfLiteTensor *tensor = tensor_at(context, p);
        if (tensor == NULL) return kTfLiteError;
        void *data = place(p, tensor->data);
        if (row >= inputs) {
            graph->outputs[row - inputs] = data;
            continue;
        }
        if (data == p->own && data != NULL && tensor->data != NULL)
            memcpy(data, tensor->data, p->bytes);
        graph->inputs[row] = data;
    }
    const NeutronDataConfig config = {graph->inputs, graph->outputs, NULL, graph->prefetch};
    const NeutronError error = neutronRunBlocking(graph->model, &config);
    if (error != NEUTRON_NONE) return refuse(context, error, neutronModelErrorDetail(graph->model));
    for (uint32_t row = inputs; row < inputs + outputs; row++) {
        const port *p = &graph->ports[row];
        TfLiteTensor *tensor = tensor_of(context, p->tensor);
        if (tensor->data != NULL && tensor->data != graph->outputs[row - inputs])
            memcpy(tensor->data, graph->outputs[row - inputs], p->bytes);
    }
    return kTfLiteOk;
}
