/* One NeutronGraph operator: its blocks, its prepared model and the memory that the interpreter
 * does not have for it. */
#ifndef LITERT_GRAPH_H
#define LITERT_GRAPH_H

#include "neutron.h"
#include "tflite.h"

typedef struct {
    uint32_t timeout; /* seconds, as NeutronModelConfig has it */
    uint32_t threads; /* 0: what the environment says */
} lr_options;

typedef struct lr_graph lr_graph;

/* NULL when it cannot run here; why is reported to the interpreter. `node` need not outlive this.
 */
lr_graph *lr_graph_make(TfLiteContext *context, const TfLiteNode *node, const lr_options *options);
void lr_graph_free(lr_graph *graph);
TfLiteStatus lr_graph_run(TfLiteContext *context, lr_graph *graph);

#endif
