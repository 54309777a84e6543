/* Transposed convolution with OHWI weights.
 *
 * The reference sums in float32, which is exact while sums stay below 2^24; here they are integers.
 */
#include <vector>

#include "image.h"
#include "kernels.h"
#include "requantize.h"

namespace host_ops {

using executorch::aten::ScalarType;

namespace {

void convolve(Context &context, Stack stack, const char *name, bool nhwc) {
    Arguments call(context, stack, name);
    const View x = call.tensor(), weight = call.tensor();
    const View bias = call.optional_tensor(ScalarType::Int);
    const Pair stride = pair(call.integers(1)), padding = pair(call.integers(1));
    const Pair extra = pair(call.integers(1)), dilation = pair(call.integers(1));
    const int32_t in_offset = call.int32(), out_offset = call.int32();
    const View multipliers = call.tensor(ScalarType::Int), shifts = call.tensor(ScalarType::Int);
    const int32_t low = call.int32(), high = call.int32();
    call.skip(); /* scratch */
    call.skip(); /* output scratch */
    const View result = call.tensor();
    if (!call.ok() || !call.require(x.rank == 4 && weight.rank == 4 && result.rank == 4,
                                    "the operands are no images")) {
        return;
    }
    const Image in = image(x, nhwc), out = image(result, nhwc);
    const int64_t kernel_h = weight.size[1], kernel_w = weight.size[2], outputs = weight.size[0];
    const bool sane = stride.h > 0 && stride.w > 0 && padding.h >= 0 && padding.w >= 0 &&
                      dilation.h > 0 && dilation.w > 0 && extra.h >= 0 && extra.w >= 0;
    if (!call.require(sane && weight.size[3] == in.channels && outputs == out.channels &&
                          out.batch == in.batch &&
                          out.height == (in.height - 1) * stride.h - 2 * padding.h +
                                            dilation.h * (kernel_h - 1) + extra.h + 1 &&
                          out.width == (in.width - 1) * stride.w - 2 * padding.w +
                                           dilation.w * (kernel_w - 1) + extra.w + 1,
                      "the shapes do not fit") ||
        !call.require(multipliers.elements() == outputs && shifts.elements() == outputs &&
                          (bias.data == nullptr || bias.elements() == outputs),
                      "there is not one multiplier and bias per channel")) {
        return;
    }
    for (int64_t o = 0; o < outputs; ++o) {
        if (!call.require(shift_fits(shifts.as<int32_t>()[o]), "a shift is out of range")) {
            return;
        }
    }
    std::vector<int32_t> sums(static_cast<size_t>(out.height * out.width));
    for (int64_t n = 0; n < out.batch; ++n) {
        for (int64_t o = 0; o < outputs; ++o) {
            sums.assign(sums.size(), bias.data != nullptr ? bias.as<int32_t>()[o] : 0);
            const int8_t *taps = weight.as<int8_t>() + o * weight.stride[0];
            for (int64_t ih = 0; ih < in.height; ++ih) {
                for (int64_t iw = 0; iw < in.width; ++iw) {
                    const int8_t *source = in.at(n, ih, iw);
                    for (int64_t kh = 0; kh < kernel_h; ++kh) {
                        const int64_t oh = ih * stride.h - padding.h + kh * dilation.h;
                        for (int64_t kw = 0; oh >= 0 && oh < out.height && kw < kernel_w; ++kw) {
                            const int64_t ow = iw * stride.w - padding.w + kw * dilation.w;
                            if (ow < 0 || ow >= out.width) {
                                continue;
                            }
                            int32_t &sum = sums[static_cast<size_t>(oh * out.width + ow)];
                            const int8_t *tap =
                                taps + kh * weight.stride[1] + kw * weight.stride[2];
                            for (int64_t i = 0; i < in.channels; ++i) {
                                sum = wrapping_add(sum, (source[i * in.step_c] + in_offset) *
                                                            tap[i * weight.stride[3]]);
                            }
                        }
                    }
                }
            }
            for (int64_t oh = 0; oh < out.height; ++oh) {
                for (int64_t ow = 0; ow < out.width; ++ow) {
                    const int32_t sum = sums[static_cast<size_t>(oh * out.width + ow)];
                    const int32_t scaled =
                        requantize(sum, multipliers.as<int32_t>()[o], shifts.as<int32_t>()[o]);
                    out.at(n, oh, ow)[o * out.step_c] = stored(scaled, out_offset, low, high);
                }
            }
        }
    }
}

} // namespace

void quantized_transpose_conv2d(Context &context, Stack stack) {
    convolve(context, stack, "cortex_m::quantized_transpose_conv2d", false);
}

void quantized_transpose_conv2d_nhwc(Context &context, Stack stack) {
    convolve(context, stack, "cortex_m::quantized_transpose_conv2d_nhwc", true);
}

} // namespace host_ops
