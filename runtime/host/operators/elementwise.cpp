/* Operators on single elements. Operands broadcast in the logical shape, whatever their dim orders.
 */
#include <cmath>

#include "kernels.h"
#include "requantize.h"

namespace host_ops {

using executorch::aten::ScalarType;

namespace {

constexpr int kAddShift = 20; /* CMSIS-NN's headroom for INT8 additions */

bool operands(Arguments &call, const View &a, const View &b, const View &out, View (&views)[3]) {
    views[0] = out;
    return call.ok() && call.require(broadcast(a, out, &views[1]) && broadcast(b, out, &views[2]),
                                     "the shapes do not broadcast");
}

template <typename T> void pick(const View (&views)[3], bool larger) {
    T *out = views[0].as<T>();
    const T *a = views[1].as<T>(), *b = views[2].as<T>();
    for_each(views, [&](const int64_t *at) {
        const T x = a[at[1]], y = b[at[2]];
        out[at[0]] = (x < y) == larger ? y : x;
    });
}

void extremum(Context &context, Stack stack, const char *name, bool larger) {
    Arguments call(context, stack, name);
    const View a = call.any_tensor(), b = call.any_tensor(), out = call.any_tensor();
    View views[3];
    if (!operands(call, a, b, out, views) ||
        !call.require(a.dtype == b.dtype && a.dtype == out.dtype, "the operands' types differ")) {
        return;
    }
    if (out.dtype == ScalarType::Char) {
        pick<int8_t>(views, larger);
    } else if (call.require(out.dtype == ScalarType::Int, "only INT8 and INT32 have a kernel")) {
        pick<int32_t>(views, larger);
    }
}

template <typename T>
void divide(const View (&views)[3], int32_t zero_a, int32_t zero_b, int32_t zero_out, float scale,
            float low, float high) {
    T *out = views[0].as<T>();
    const T *a = views[1].as<T>(), *b = views[2].as<T>();
    for_each(views, [&](const int64_t *at) {
        const float x = static_cast<float>(a[at[1]] - zero_a);
        const float y = static_cast<float>(b[at[2]] - zero_b);
        const float quotient = y != 0.0f ? x / y : 0.0f;
        const float result = std::nearbyintf(quotient * scale) + static_cast<float>(zero_out);
        out[at[0]] = static_cast<T>(result < low ? low : result > high ? high : result);
    });
}

} // namespace

void quantized_add(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::quantized_add");
    const View a = call.tensor();
    const int32_t zero_a = call.int32();
    const int64_t multiplier_a = call.integer(), shift_a = call.integer();
    const View b = call.tensor();
    const int32_t zero_b = call.int32();
    const int64_t multiplier_b = call.integer(), shift_b = call.integer();
    const int32_t zero_out = call.int32();
    const int64_t multiplier = call.integer(), shift = call.integer();
    const int32_t low = call.int32(), high = call.int32();
    const View out = call.tensor();
    View views[3];
    if (!operands(call, a, b, out, views) ||
        !call.require(shift_fits(shift_a) && shift_fits(shift_b) && shift_fits(shift),
                      "a shift is out of range")) {
        return;
    }
    int8_t *result = out.as<int8_t>();
    const int8_t *x = a.as<int8_t>(), *y = b.as<int8_t>();
    for_each(views, [&](const int64_t *at) {
        const int64_t left =
            requantize(int64_t{x[at[1]] - zero_a} * (1 << kAddShift), multiplier_a, shift_a);
        const int64_t right =
            requantize(int64_t{y[at[2]] - zero_b} * (1 << kAddShift), multiplier_b, shift_b);
        const int32_t sum = wrapping_add(static_cast<int32_t>(left), static_cast<int32_t>(right));
        result[at[0]] = stored(requantize(sum, multiplier, shift), zero_out, low, high);
    });
}

void quantized_mul(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::quantized_mul");
    const View a = call.tensor();
    const int32_t zero_a = call.int32();
    const View b = call.tensor();
    const int32_t zero_b = call.int32(), zero_out = call.int32();
    const int64_t multiplier = call.integer(), shift = call.integer();
    const View out = call.tensor();
    View views[3];
    if (!operands(call, a, b, out, views) ||
        !call.require(shift_fits(shift), "the shift is out of range")) {
        return;
    }
    int8_t *result = out.as<int8_t>();
    const int8_t *x = a.as<int8_t>(), *y = b.as<int8_t>();
    for_each(views, [&](const int64_t *at) {
        const int32_t product = wrapping_mul(x[at[1]] - zero_a, y[at[2]] - zero_b);
        result[at[0]] = stored(requantize(product, multiplier, shift), zero_out, -128, 127);
    });
}

void quantized_div(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::quantized_div");
    const View a = call.any_tensor();
    const int32_t zero_a = call.int32();
    const View b = call.any_tensor();
    const int32_t zero_b = call.int32(), zero_out = call.int32();
    const float scale = static_cast<float>(call.number());
    const View out = call.any_tensor();
    View views[3];
    if (!operands(call, a, b, out, views) ||
        !call.require(a.dtype == b.dtype && a.dtype == out.dtype, "the operands' types differ")) {
        return;
    }
    if (out.dtype == ScalarType::Char) {
        divide<int8_t>(views, zero_a, zero_b, zero_out, scale, -128.0f, 127.0f);
    } else if (call.require(out.dtype == ScalarType::Short, "only INT8 and INT16 have a kernel")) {
        divide<int16_t>(views, zero_a, zero_b, zero_out, scale, -32768.0f, 32767.0f);
    }
}

void quantized_activation(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::quantized_activation");
    const View x = call.tensor(), table = call.tensor(), out = call.tensor();
    if (!call.ok() || !call.require(x.same_shape(out), "the shapes differ") ||
        !call.require(table.rank == 1 && table.size[0] == 256 && table.stride[0] == 1,
                      "the table has no 256 entries")) {
        return;
    }
    const View views[2] = {out, x};
    int8_t *result = out.as<int8_t>();
    const int8_t *source = x.as<int8_t>(), *entry = table.as<int8_t>();
    for_each(views, [&](const int64_t *at) { result[at[0]] = entry[source[at[1]] + 128]; });
}

void minimum(Context &context, Stack stack) {
    extremum(context, stack, "cortex_m::minimum", false);
}

void maximum(Context &context, Stack stack) { extremum(context, stack, "cortex_m::maximum", true); }

} // namespace host_ops
