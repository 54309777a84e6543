/* Pooling. Averages follow the reference's float32 arithmetic step by step: dequantize, sum in
 * window order, divide, round. */
#include <cmath>

#include "image.h"
#include "kernels.h"
#include "requantize.h"

namespace host_ops {

namespace {

struct Window {
    Pair kernel, stride, padding;
};

/* The part of a window that lies inside the image. */
struct Span {
    int64_t first, last;
};

Span inside(int64_t at, int64_t stride, int64_t padding, int64_t kernel, int64_t size) {
    const int64_t start = at * stride - padding;
    const int64_t end = start + kernel;
    return {start < 0 ? 0 : start, end > size ? size : end};
}

Window window(Arguments &call) {
    Window made{};
    made.kernel = pair(call.integers(1));
    made.stride = pair(call.integers(1));
    made.padding = pair(call.integers(1));
    return made;
}

bool check(Arguments &call, const Image &in, const Image &out, const Window &window, bool ceil) {
    const bool sane = window.kernel.h > 0 && window.kernel.w > 0 && window.stride.h > 0 &&
                      window.stride.w > 0 && window.padding.h >= 0 && window.padding.w >= 0 &&
                      2 * window.padding.h <= window.kernel.h &&
                      2 * window.padding.w <= window.kernel.w;
    const auto size = [&](int64_t in_size, int64_t kernel, int64_t stride, int64_t padding) {
        int64_t count = (in_size + 2 * padding - kernel + (ceil ? stride - 1 : 0)) / stride + 1;
        /* A window that begins in the padding behind the image is none. */
        return ceil && (count - 1) * stride >= in_size + padding ? count - 1 : count;
    };
    return call.require(
        sane && in.batch == out.batch && in.channels == out.channels &&
            out.height == size(in.height, window.kernel.h, window.stride.h, window.padding.h) &&
            out.width == size(in.width, window.kernel.w, window.stride.w, window.padding.w),
        "the shapes do not fit");
}

template <typename Reduce>
void pool(const Image &in, const Image &out, const Window &w, Reduce reduce) {
    for (int64_t n = 0; n < out.batch; ++n) {
        for (int64_t oh = 0; oh < out.height; ++oh) {
            for (int64_t ow = 0; ow < out.width; ++ow) {
                const Span rows = inside(oh, w.stride.h, w.padding.h, w.kernel.h, in.height);
                const Span columns = inside(ow, w.stride.w, w.padding.w, w.kernel.w, in.width);
                for (int64_t c = 0; c < out.channels; ++c) {
                    out.at(n, oh, ow)[c * out.step_c] = reduce(n, rows, columns, c);
                }
            }
        }
    }
}

void average(Context &context, Stack stack, const char *name, bool nhwc) {
    Arguments call(context, stack, name);
    const View x = call.tensor();
    const Window w = window(call);
    const bool ceil = call.boolean();
    const float zero = static_cast<float>(call.integer());
    const int64_t multiplier = call.integer(), shift = call.integer();
    call.skip(); /* scratch */
    const View result = call.tensor();
    if (!call.ok() ||
        !call.require(x.rank == 4 && result.rank == 4, "the operands are no images") ||
        !call.require(multiplier > 0 && shift_fits(shift), "the scale is not positive")) {
        return;
    }
    const Image in = image(x, nhwc), out = image(result, nhwc);
    if (!check(call, in, out, w, ceil)) {
        return;
    }
    const float scale = static_cast<float>(
        std::ldexp(static_cast<double>(multiplier), static_cast<int>(shift) - 31));
    pool(in, out, w, [&](int64_t n, Span rows, Span columns, int64_t c) {
        float sum = 0.0f;
        for (int64_t h = rows.first; h < rows.last; ++h) {
            for (int64_t v = columns.first; v < columns.last; ++v) {
                sum += (static_cast<float>(in.at(n, h, v)[c * in.step_c]) - zero) * scale;
            }
        }
        const int64_t count = (rows.last - rows.first) * (columns.last - columns.first);
        const float mean = count > 0 ? sum / static_cast<float>(count) : 0.0f;
        const float value = std::nearbyintf(mean / scale) + zero;
        return static_cast<int8_t>(value < -128.0f ? -128.0f : value > 127.0f ? 127.0f : value);
    });
}

void largest(Context &context, Stack stack, const char *name, bool nhwc) {
    Arguments call(context, stack, name);
    const View x = call.tensor();
    const Window w = window(call);
    const Pair dilation = pair(call.integers(1));
    const bool ceil = call.boolean();
    const int64_t zero_in = call.integer(), zero_out = call.integer();
    const int32_t low = call.int32(), high = call.int32();
    const View result = call.tensor();
    if (!call.ok() ||
        !call.require(x.rank == 4 && result.rank == 4, "the operands are no images") ||
        !call.require(dilation.h == 1 && dilation.w == 1 && !ceil,
                      "dilation and ceil mode have no kernel") ||
        !call.require(zero_in == zero_out, "the zero points differ")) {
        return;
    }
    const Image in = image(x, nhwc), out = image(result, nhwc);
    if (!check(call, in, out, w, false)) {
        return;
    }
    pool(in, out, w, [&](int64_t n, Span rows, Span columns, int64_t c) {
        int8_t best = -128;
        for (int64_t h = rows.first; h < rows.last; ++h) {
            for (int64_t v = columns.first; v < columns.last; ++v) {
                const int8_t one = in.at(n, h, v)[c * in.step_c];
                best = one > best ? one : best;
            }
        }
        return stored(best, 0, low, high);
    });
}

} // namespace

void quantized_avg_pool2d(Context &context, Stack stack) {
    average(context, stack, "cortex_m::quantized_avg_pool2d", false);
}

void quantized_avg_pool2d_nhwc(Context &context, Stack stack) {
    average(context, stack, "cortex_m::quantized_avg_pool2d_nhwc", true);
}

void quantized_max_pool2d(Context &context, Stack stack) {
    largest(context, stack, "cortex_m::quantized_max_pool2d", false);
}

void quantized_max_pool2d_nhwc(Context &context, Stack stack) {
    largest(context, stack, "cortex_m::quantized_max_pool2d_nhwc", true);
}

} // namespace host_ops
