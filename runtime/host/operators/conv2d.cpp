/* Convolution, plain (OHWI weights, possibly grouped) and depth-wise (weights 1 x H x W x C). */
#include "image.h"
#include "kernels.h"
#include "requantize.h"

namespace host_ops {

using executorch::aten::ScalarType;

namespace {

struct Scaling {
    View bias, multipliers, shifts;
    int32_t in_offset, out_offset, low, high;

    int8_t store(int32_t sum, int64_t channel) const {
        const int32_t scaled =
            requantize(sum, multipliers.as<int32_t>()[channel], shifts.as<int32_t>()[channel]);
        return stored(scaled, out_offset, low, high);
    }
};

bool check_scaling(Arguments &call, const Scaling &scaling, int64_t channels) {
    if (!call.require(scaling.multipliers.elements() == channels &&
                          scaling.shifts.elements() == channels,
                      "there is not one multiplier per channel") ||
        !call.require(scaling.bias.data == nullptr || scaling.bias.elements() == channels,
                      "the bias does not fit")) {
        return false;
    }
    for (int64_t c = 0; c < channels; ++c) {
        if (!call.require(shift_fits(scaling.shifts.as<int32_t>()[c]), "a shift is out of range")) {
            return false;
        }
    }
    return true;
}

bool check_window(Arguments &call, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                  int64_t padding, int64_t dilation) {
    const bool sane = stride > 0 && padding >= 0 && dilation > 0 && kernel > 0;
    return call.require(sane &&
                            (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1 == out,
                        "the shapes do not fit");
}

void convolve(Context &context, Stack stack, const char *name, bool nhwc, bool depthwise) {
    Arguments call(context, stack, name);
    const View x = call.tensor(), weight = call.tensor();
    Scaling scaling{};
    scaling.bias = call.optional_tensor(ScalarType::Int);
    const Pair stride = pair(call.integers(1)), padding = pair(call.integers(1)),
               dilation = pair(call.integers(1));
    if (depthwise) {
        call.skip(); /* depth multiplier: the shapes tell it */
    }
    scaling.in_offset = call.int32();
    scaling.out_offset = call.int32();
    scaling.multipliers = call.tensor(ScalarType::Int);
    scaling.shifts = call.tensor(ScalarType::Int);
    scaling.low = call.int32();
    scaling.high = call.int32();
    call.skip(); /* scratch */
    const View result = call.tensor();
    if (!call.ok() || !call.require(x.rank == 4 && weight.rank == 4 && result.rank == 4,
                                    "the operands are no images")) {
        return;
    }
    const Image in = image(x, nhwc), out = image(result, nhwc);
    const int64_t kernel_h = weight.size[1], kernel_w = weight.size[2];
    const int64_t outputs = depthwise ? weight.size[3] : weight.size[0];
    const int64_t inputs = depthwise ? 1 : weight.size[3]; /* of one group */
    if (!call.require(inputs > 0 && in.channels % inputs == 0 && in.channels > 0,
                      "the channels do not fit") ||
        !call.require(outputs == out.channels && out.batch == in.batch, "the shapes do not fit") ||
        !check_window(call, in.height, out.height, kernel_h, stride.h, padding.h, dilation.h) ||
        !check_window(call, in.width, out.width, kernel_w, stride.w, padding.w, dilation.w) ||
        !check_scaling(call, scaling, outputs)) {
        return;
    }
    const int64_t groups = in.channels / inputs;
    if (!call.require(outputs % groups == 0, "the channels do not fit")) {
        return;
    }
    const int64_t per_group = outputs / groups;
    const int64_t step_o = weight.stride[depthwise ? 3 : 0],
                  step_i = weight.stride[depthwise ? 0 : 3];
    const int8_t *weights = weight.as<int8_t>();
    for (int64_t n = 0; n < out.batch; ++n) {
        for (int64_t oh = 0; oh < out.height; ++oh) {
            for (int64_t ow = 0; ow < out.width; ++ow) {
                int8_t *target = out.at(n, oh, ow);
                for (int64_t o = 0; o < outputs; ++o) {
                    int32_t sum = scaling.bias.data != nullptr ? scaling.bias.as<int32_t>()[o] : 0;
                    const int64_t first = o / per_group * inputs;
                    for (int64_t kh = 0; kh < kernel_h; ++kh) {
                        const int64_t ih = oh * stride.h - padding.h + kh * dilation.h;
                        if (ih < 0 || ih >= in.height) {
                            continue; /* padding is the zero point, which the offset makes 0 */
                        }
                        for (int64_t kw = 0; kw < kernel_w; ++kw) {
                            const int64_t iw = ow * stride.w - padding.w + kw * dilation.w;
                            if (iw < 0 || iw >= in.width) {
                                continue;
                            }
                            const int8_t *source = in.at(n, ih, iw) + first * in.step_c;
                            const int8_t *tap = weights + o * step_o + kh * weight.stride[1] +
                                                kw * weight.stride[2];
                            for (int64_t i = 0; i < inputs; ++i) {
                                sum =
                                    wrapping_add(sum, (source[i * in.step_c] + scaling.in_offset) *
                                                          tap[i * step_i]);
                            }
                        }
                    }
                    target[o * out.step_c] = scaling.store(sum, o);
                }
            }
        }
    }
}

} // namespace

void quantized_conv2d(Context &context, Stack stack) {
    convolve(context, stack, "cortex_m::quantized_conv2d", false, false);
}

void quantized_conv2d_nhwc(Context &context, Stack stack) {
    convolve(context, stack, "cortex_m::quantized_conv2d_nhwc", true, false);
}

void quantized_depthwise_conv2d(Context &context, Stack stack) {
    convolve(context, stack, "cortex_m::quantized_depthwise_conv2d", false, true);
}

void quantized_depthwise_conv2d_nhwc(Context &context, Stack stack) {
    convolve(context, stack, "cortex_m::quantized_depthwise_conv2d_nhwc", true, true);
}

} // namespace host_ops
