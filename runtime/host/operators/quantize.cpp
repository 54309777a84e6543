/* Between float and stored values, with the reference's own float arithmetic. */
#include <cmath>

#include "kernels.h"

namespace host_ops {

using executorch::aten::ScalarType;

namespace {

template <typename T>
void quantize(const View &x, const View &out, float inverse, float zero, float low, float high) {
    const View views[2] = {out, x};
    T *result = out.as<T>();
    const float *source = x.as<float>();
    for_each(views, [&](const int64_t *at) {
        const float value = std::nearbyintf(source[at[1]] * inverse) + zero;
        result[at[0]] = static_cast<T>(!(value > low) ? low : value > high ? high : value);
    });
}

template <typename T> void dequantize(const View &x, const View &out, float scale, float zero) {
    const View views[2] = {out, x};
    float *result = out.as<float>();
    const T *source = x.as<T>();
    for_each(views, [&](const int64_t *at) {
        result[at[0]] = (static_cast<float>(source[at[1]]) - zero) * scale;
    });
}

} // namespace

void quantize_per_tensor(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::quantize_per_tensor");
    const View x = call.tensor(ScalarType::Float);
    const double scale = call.number();
    const int64_t zero = call.integer(), low = call.integer(), high = call.integer();
    call.skip(); /* dtype: the output tensor has it */
    const View out = call.any_tensor();
    if (!call.ok() || !call.require(x.same_shape(out), "the shapes differ") ||
        !call.require(scale > 0.0, "the scale is not positive")) {
        return;
    }
    const float inverse = static_cast<float>(1.0 / scale);
    const float bounds[3] = {static_cast<float>(zero), static_cast<float>(low),
                             static_cast<float>(high)};
    if (out.dtype == ScalarType::Char) {
        if (call.require(low >= -128 && high <= 127, "the range is not INT8's")) {
            quantize<int8_t>(x, out, inverse, bounds[0], bounds[1], bounds[2]);
        }
    } else if (call.require(out.dtype == ScalarType::Short, "only INT8 and INT16 have a kernel") &&
               call.require(low >= -32768 && high <= 32767, "the range is not INT16's")) {
        quantize<int16_t>(x, out, inverse, bounds[0], bounds[1], bounds[2]);
    }
}

void dequantize_per_tensor(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::dequantize_per_tensor");
    const View x = call.any_tensor();
    const float scale = static_cast<float>(call.number());
    const float zero = static_cast<float>(call.integer());
    call.skip(); /* quant_min */
    call.skip(); /* quant_max */
    call.skip(); /* dtype: the input tensor has it */
    const View out = call.tensor(ScalarType::Float);
    if (!call.ok() || !call.require(x.same_shape(out), "the shapes differ")) {
        return;
    }
    if (x.dtype == ScalarType::Char) {
        dequantize<int8_t>(x, out, scale, zero);
    } else if (call.require(x.dtype == ScalarType::Short, "only INT8 and INT16 have a kernel")) {
        dequantize<int16_t>(x, out, scale, zero);
    }
}

} // namespace host_ops
