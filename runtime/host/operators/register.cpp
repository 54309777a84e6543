/* Registers the host kernels with the ExecuTorch runtime of this process when the library is
 * loaded. */
#include <executorch/runtime/kernel/operator_registry.h>

#include "kernels.h"

namespace host_ops {
namespace {

using executorch::runtime::Kernel;

/* Kernels and their table allocate nothing and throw nothing. */
/* NOLINTNEXTLINE(bugprone-throwing-static-initialization,cert-err58-cpp) */
const Kernel kernels[] = {
    Kernel("cortex_m::quantize_per_tensor.out", quantize_per_tensor),
    Kernel("cortex_m::dequantize_per_tensor.out", dequantize_per_tensor),
    Kernel("cortex_m::quantized_add.out", quantized_add),
    Kernel("cortex_m::quantized_mul.out", quantized_mul),
    Kernel("cortex_m::quantized_div.out", quantized_div),
    Kernel("cortex_m::quantized_activation.out", quantized_activation),
    Kernel("cortex_m::minimum.out", minimum),
    Kernel("cortex_m::maximum.out", maximum),
    Kernel("cortex_m::quantized_linear.out", quantized_linear),
    Kernel("cortex_m::quantized_batch_matmul.out", quantized_batch_matmul),
    Kernel("cortex_m::softmax.out", softmax),
    Kernel("cortex_m::transpose.out", transpose),
    Kernel("cortex_m::pad.out", pad),
    Kernel("cortex_m::quantized_conv2d.out", quantized_conv2d),
    Kernel("cortex_m::quantized_conv2d_nhwc.out", quantized_conv2d_nhwc),
    Kernel("cortex_m::quantized_depthwise_conv2d.out", quantized_depthwise_conv2d),
    Kernel("cortex_m::quantized_depthwise_conv2d_nhwc.out", quantized_depthwise_conv2d_nhwc),
    Kernel("cortex_m::quantized_transpose_conv2d.out", quantized_transpose_conv2d),
    Kernel("cortex_m::quantized_transpose_conv2d_nhwc.out", quantized_transpose_conv2d_nhwc),
    Kernel("cortex_m::quantized_avg_pool2d.out", quantized_avg_pool2d),
    Kernel("cortex_m::quantized_avg_pool2d_nhwc.out", quantized_avg_pool2d_nhwc),
    Kernel("cortex_m::quantized_max_pool2d.out", quantized_max_pool2d),
    Kernel("cortex_m::quantized_max_pool2d_nhwc.out", quantized_max_pool2d_nhwc),
};

/* Someone who registered kernels of these names before keeps them; ours are then not needed. */
/* NOLINTNEXTLINE(bugprone-throwing-static-initialization,cert-err58-cpp) */
const bool registered =
    executorch::runtime::register_kernels({kernels, sizeof(kernels) / sizeof(kernels[0])}) ==
    executorch::runtime::Error::Ok;

} // namespace
} // namespace host_ops

/* 1 when programs of this process reach these kernels, 0 when another library had registered its
 * own. */
extern "C" __attribute__((visibility("default"))) int openneutron_host_ops_registered(void) {
    return host_ops::registered ? 1 : 0;
}
