/* The part of LiteRT's C interface that a delegate meets. Its structs are a binary interface that
 * every version of the interpreter keeps: fields are added at the end only. What we never touch is
 * named `unused`. */
#ifndef LITERT_TFLITE_H
#define LITERT_TFLITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int TfLiteStatus;
enum { kTfLiteOk = 0, kTfLiteError = 1 };

/* TfLiteType, those that microcode knows. */
enum {
    kTfLiteFloat32 = 1,
    kTfLiteInt32 = 2,
    kTfLiteUInt8 = 3,
    kTfLiteInt64 = 4,
    kTfLiteBool = 6,
    kTfLiteInt16 = 7,
    kTfLiteInt8 = 9
};

enum { kTfLiteMmapRo = 1 }; /* allocation_type of constants */
enum { kTfLiteDelegateFlagsAllowDynamicTensors = 1 };

typedef struct {
    int size;
    int data[];
} TfLiteIntArray;

typedef struct TfLiteContext TfLiteContext;
typedef struct TfLiteDelegate TfLiteDelegate;

typedef struct {
    int type;
    void *data;
    TfLiteIntArray *dims;
    float scale;
    int32_t zero_point;
    int allocation_type;
    size_t bytes;
    const void *allocation;
    const char *name;
    TfLiteDelegate *delegate;
    int buffer_handle;
    bool data_is_stale, is_variable;
    struct {
        int type;
        void *params;
    } quantization;
    void *sparsity;
    const TfLiteIntArray *dims_signature;
} TfLiteTensor; /* tensors lie in an array: the size is part of the interface */

typedef struct {
    TfLiteIntArray *inputs, *outputs, *intermediates, *temporaries;
    void *user_data;
    void *builtin_data;
    const void *custom_initial_data;
    int custom_initial_data_size;
} TfLiteNode;

/* Handed over by value: complete, and zero where we have nothing to say. */
typedef struct {
    void *(*init)(TfLiteContext *context, const char *buffer, size_t length);
    void (*free)(TfLiteContext *context, void *buffer);
    TfLiteStatus (*prepare)(TfLiteContext *context, TfLiteNode *node);
    TfLiteStatus (*invoke)(TfLiteContext *context, TfLiteNode *node);
    const char *(*profiling_string)(const TfLiteContext *context, const TfLiteNode *node);
    int32_t builtin_code;
    const char *custom_name;
    int version;
    void *registration_external;
    void *async_kernel;
    uint64_t inplace_operator;
} TfLiteRegistration;

/* What init of a delegate's kernel gets as its buffer. */
typedef struct {
    TfLiteDelegate *delegate;
    TfLiteIntArray *nodes_to_replace, *input_tensors, *output_tensors;
} TfLiteDelegateParams;

struct TfLiteDelegate {
    void *data;
    TfLiteStatus (*Prepare)(TfLiteContext *context, TfLiteDelegate *delegate);
    void *unused[3]; /* buffer handles */
    int64_t flags;
    void *opaque_delegate_builder;
};

struct TfLiteContext {
    size_t tensors_size;
    TfLiteStatus (*GetExecutionPlan)(TfLiteContext *context, TfLiteIntArray **plan);
    TfLiteTensor *tensors;
    void *impl;
    void *unused_resize;
    void (*ReportError)(TfLiteContext *context, const char *format, ...);
    void *unused_add;
    TfLiteStatus (*GetNodeAndRegistration)(TfLiteContext *context, int index, TfLiteNode **node,
                                           TfLiteRegistration **registration);
    TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(TfLiteContext *context,
                                                          TfLiteRegistration registration,
                                                          const TfLiteIntArray *nodes,
                                                          TfLiteDelegate *delegate);
    /* Behind it: threads, external contexts, buffers, and functions of other runtimes. */
};

#endif
