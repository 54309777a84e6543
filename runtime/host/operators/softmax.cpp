/* Softmax over any one dimension.
 *
 * The reference computes in float32 with whatever exp the processor's vector unit has, so its last
 * bit is the machine's. Here it is double precision, rounded once: equal wherever the reference's
 * own error does not cross a rounding border.
 */
#include <cmath>

#include "kernels.h"
#include "requantize.h"

namespace host_ops {

namespace {

constexpr int kInputIntegerBits = 5;  /* of CMSIS-NN's fixed-point input */
constexpr double kSteps = 256.0;      /* the result's scale is 1/256 */
constexpr int64_t kOutputZero = -128; /* and its zero point this */

} // namespace

void softmax(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::softmax");
    const View x = call.tensor();
    int64_t dim = call.integer();
    const int64_t zero_in = call.integer(), zero_out = call.integer();
    const int64_t multiplier = call.integer(), shift = call.integer();
    call.skip(); /* diff_min: the fixed-point kernel's cut-off, which the reference does not apply
                  */
    const View out = call.tensor();
    if (!call.ok() || !call.require(x.rank > 0 && x.same_shape(out), "the shapes differ") ||
        !call.require(dim >= -x.rank && dim < x.rank, "there is no such dimension") ||
        !call.require(zero_out == kOutputZero, "the result's zero point is not -128") ||
        !call.require(multiplier > 0 && shift_fits(shift), "the scale is not positive")) {
        return;
    }
    dim = dim < 0 ? dim + x.rank : dim;
    const double scale = std::ldexp(static_cast<double>(multiplier),
                                    static_cast<int>(shift) - 31 - (31 - kInputIntegerBits));
    const float step = static_cast<float>(scale);
    View views[2] = {out, x};
    const int64_t length = x.size[dim], from = x.stride[dim], to = out.stride[dim];
    views[0].size[dim] = views[1].size[dim] = 1;
    for_each(views, [&](const int64_t *at) {
        const int8_t *line = x.as<int8_t>() + at[1];
        int8_t *result = out.as<int8_t>() + at[0];
        int largest = -128;
        for (int64_t i = 0; i < length; ++i) {
            largest = line[i * from] > largest ? line[i * from] : largest;
        }
        const auto value = [&](int64_t i) {
            const float one = static_cast<float>(line[i * from] - zero_in) * step;
            return std::exp(
                static_cast<double>(one - static_cast<float>(largest - zero_in) * step));
        };
        double sum = 0.0;
        for (int64_t i = 0; i < length; ++i) {
            sum += value(i);
        }
        for (int64_t i = 0; i < length; ++i) {
            const double rounded =
                std::nearbyint(value(i) / sum * kSteps) + static_cast<double>(kOutputZero);
            result[i * to] = static_cast<int8_t>(rounded > 127.0 ? 127.0 : rounded);
        }
    });
}

} // namespace host_ops
