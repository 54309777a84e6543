/* LiteRT's external delegate for NeutronGraph operators: what `load_delegate` looks for, and one
 * kernel per operator. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

#define NEUTRON_GRAPH "NeutronGraph" /* the operator's name in files, NXP's as ours */

typedef struct {
    TfLiteDelegate base;
    lr_options options;
} delegate;

static void *kernel_init(TfLiteContext *context, const char *buffer, size_t length) {
    const TfLiteDelegateParams *params = (const TfLiteDelegateParams *)(const void *)buffer;
    TfLiteNode *node;
    TfLiteRegistration *registration;
    (void)length;
    const int index = params->nodes_to_replace->data[0];
    if (context->GetNodeAndRegistration(context, index, &node, &registration) != kTfLiteOk)
        return NULL;
    return lr_graph_make(context, node, &((delegate *)params->delegate)->options);
}

static void kernel_free(TfLiteContext *context, void *buffer) {
    (void)context;
    lr_graph_free(buffer);
}

/* What init could not do was reported by it. */
static TfLiteStatus kernel_prepare(TfLiteContext *context, TfLiteNode *node) {
    (void)context;
    return node->user_data != NULL ? kTfLiteOk : kTfLiteError;
}

static TfLiteStatus kernel_invoke(TfLiteContext *context, TfLiteNode *node) {
    return node->user_data != NULL ? lr_graph_run(context, node->user_data) : kTfLiteError;
}

static bool is_graph(TfLiteContext *context, int index) {
    TfLiteNode *node;
    TfLiteRegistration *registration;
    return context->GetNodeAndRegistration(context, index, &node, &registration) == kTfLiteOk &&
           registration->custom_name != NULL &&
           strcmp(registration->custom_name, NEUTRON_GRAPH) == 0;
}

/* Each operator becomes a kernel of its own: the interpreter gives memory to tensors between
 * kernels, but not to those inside one. */
static TfLiteStatus replace(TfLiteContext *context, int index, TfLiteDelegate *base) {
    const TfLiteRegistration kernel = {.init = kernel_init,
                                       .free = kernel_free,
                                       .prepare = kernel_prepare,
                                       .invoke = kernel_invoke,
                                       .custom_name = "OpenNeutron",
                                       .version = 1};
    int one[2] = {1, index}; /* a TfLiteIntArray of one node */
    return context->ReplaceNodeSubsetsWithDelegateKernels(
        context, kernel, (const TfLiteIntArray *)(void *)one, base);
}

static TfLiteStatus take_graphs(TfLiteContext *context, TfLiteDelegate *base) {
    TfLiteIntArray *plan;
    if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
    /* Replacing changes the plan, whose memory is the interpreter's. */
    const int count = plan->size;
    int *nodes = malloc(((size_t)count + 1) * sizeof *nodes);
    if (nodes == NULL) return kTfLiteError;
    memcpy(nodes, plan->data, (size_t)count * sizeof *nodes);
    TfLiteStatus status = kTfLiteOk;
    for (int at = 0; status == kTfLiteOk && at < count; at++) {
        if (is_graph(context, nodes[at])) status = replace(context, nodes[at], base);
    }
    free(nodes);
    return status;
}

static bool number(const char *text, uint32_t *value) {
    char *end = NULL;
    const unsigned long found = strtoul(text, &end, 10);
    *value = (uint32_t)found;
    return *text >= '0' && *text <= '9' && *end == 0 && found < UINT32_MAX;
}

static bool set_option(lr_options *options, const char *key, const char *value) {
    if (strcmp(key, "timeout") == 0) return number(value, &options->timeout);
    if (strcmp(key, "threads") == 0)
        return number(value, &options->threads) && options->threads >= 1 && options->threads <= 16;
    return false;
}

NEUTRON_API TfLiteDelegate *tflite_plugin_create_delegate(char **keys, char **values, size_t count,
                                                          void (*report)(const char *));
NEUTRON_API void tflite_plugin_destroy_delegate(TfLiteDelegate *base);

TfLiteDelegate *tflite_plugin_create_delegate(char **keys, char **values, size_t count,
                                              void (*report)(const char *)) {
    delegate *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->options.timeout = NEUTRON_TIMEOUT_DEFAULT;
    for (size_t at = 0; at < count; at++) {
        if (set_option(&made->options, keys[at], values[at])) continue;
        if (report != NULL)
            report("options are timeout (seconds, 0: none) and threads (1 to 16), both numbers");
        free(made);
        return NULL;
    }
    made->base.Prepare = take_graphs;
    made->base.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
    return &made->base;
}

void tflite_plugin_destroy_delegate(TfLiteDelegate *base) { free(base); }
