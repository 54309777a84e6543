/* The host kernels: one function per cortex_m operator, called with the arguments of its .out form.
 */
#pragma once

#include "arguments.h"

namespace host_ops {

void quantize_per_tensor(Context &context, Stack stack);
void dequantize_per_tensor(Context &context, Stack stack);
void quantized_add(Context &context, Stack stack);
void quantized_mul(Context &context, Stack stack);
void quantized_div(Context &context, Stack stack);
void quantized_activation(Context &context, Stack stack);
void minimum(Context &context, Stack stack);
void maximum(Context &context, Stack stack);
void quantized_linear(Context &context, Stack stack);
void quantized_batch_matmul(Context &context, Stack stack);
void softmax(Context &context, Stack stack);
void transpose(Context &context, Stack stack);
void pad(Context &context, Stack stack);
void quantized_conv2d(Context &context, Stack stack);
void quantized_conv2d_nhwc(Context &context, Stack stack);
void quantized_depthwise_conv2d(Context &context, Stack stack);
void quantized_depthwise_conv2d_nhwc(Context &context, Stack stack);
void quantized_transpose_conv2d(Context &context, Stack stack);
void quantized_transpose_conv2d_nhwc(Context &context, Stack stack);
void quantized_avg_pool2d(Context &context, Stack stack);
void quantized_avg_pool2d_nhwc(Context &context, Stack stack);
void quantized_max_pool2d(Context &context, Stack stack);
void quantized_max_pool2d_nhwc(Context &context, Stack stack);

} // namespace host_ops
