/* Linear layers and batched matrix products.
 *
 * The reference of the batched product sums in float32, which is exact while sums stay below 2^24;
 * here they are integers.
 */
#include "kernels.h"
#include "requantize.h"

namespace host_ops {

using executorch::aten::ScalarType;

namespace {

bool is_dense(const View &view) {
    int64_t step = 1;
    for (int d = view.rank - 1; d >= 0; --d) {
        if (view.size[d] != 1 && view.stride[d] != step) {
            return false;
        }
        step *= view.size[d];
    }
    return true;
}

int32_t dot(const int8_t *x, const int8_t *w, int64_t length, int32_t x_offset, int32_t w_offset) {
    int32_t sum = 0;
    for (int64_t i = 0; i < length; ++i) {
        sum = wrapping_add(sum, (x[i] + x_offset) * (w[i] + w_offset));
    }
    return sum;
}

} // namespace

void quantized_linear(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::quantized_linear");
    const View x = call.tensor(), weights = call.tensor();
    const View bias = call.optional_tensor(ScalarType::Int),
               kernel_sum = call.optional_tensor(ScalarType::Int);
    const int32_t x_offset = call.int32(), w_offset = call.int32(), out_offset = call.int32();
    const Ints multipliers = call.integers(1), shifts = call.integers(1);
    const int32_t high = call.int32(), low = call.int32(); /* in this order: the schema's */
    const View out = call.tensor();
    if (!call.ok() ||
        !call.require(x.rank >= 1 && weights.rank == 2 && out.rank == x.rank,
                      "the ranks do not fit") ||
        !call.require(is_dense(x) && is_dense(weights) && is_dense(out),
                      "the tensors are not contiguous") ||
        !call.require(shift_fits(shifts[0]), "the shift is out of range")) {
        return;
    }
    const int64_t length = x.size[x.rank - 1], columns = weights.size[0];
    const int64_t rows = length > 0 ? x.elements() / length : 0;
    if (!call.require(weights.size[1] == length && out.elements() == rows * columns,
                      "the shapes do not fit") ||
        !call.require(bias.data == nullptr || bias.elements() == columns,
                      "the bias does not fit") ||
        !call.require(kernel_sum.data == nullptr || kernel_sum.elements() == columns,
                      "the kernel sum does not fit")) {
        return;
    }
    for (int64_t row = 0; row < rows; ++row) {
        const int8_t *line = x.as<int8_t>() + row * length;
        for (int64_t column = 0; column < columns; ++column) {
            const int8_t *weight = weights.as<int8_t>() + column * length;
            int32_t sum;
            if (kernel_sum.data != nullptr) { /* the form for MVE: offsets of the weights' side are
                                                 summed beforehand */
                sum = dot(line, weight, length, 0, w_offset);
                sum = wrapping_add(sum, kernel_sum.as<int32_t>()[column]);
            } else {
                sum = dot(line, weight, length, x_offset, w_offset);
                sum = wrapping_add(sum, bias.data != nullptr ? bias.as<int32_t>()[column] : 0);
            }
            out.as<int8_t>()[row * columns + column] =
                stored(requantize(sum, multipliers[0], shifts[0]), out_offset, low, high);
        }
    }
}

void quantized_batch_matmul(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::quantized_batch_matmul");
    const View a = call.tensor();
    const int32_t a_offset = call.int32(); /* the negated zero point, as CMSIS-NN has it */
    const View b = call.tensor();
    const int32_t b_offset = call.int32(), out_offset = call.int32();
    const int64_t multiplier = call.integer(), shift = call.integer();
    call.skip(); /* scratch */
    const View out = call.tensor();
    if (!call.ok() ||
        !call.require(a.rank == 3 && b.rank == 3 && out.rank == 3,
                      "the operands are no batches of matrices") ||
        !call.require(is_dense(a) && is_dense(b) && is_dense(out),
                      "the tensors are not contiguous") ||
        !call.require(shift_fits(shift), "the shift is out of range")) {
        return;
    }
    const int64_t batch = a.size[0], rows = a.size[1], length = a.size[2], columns = b.size[1];
    if (!call.require(b.size[0] == batch && b.size[2] == length && out.size[0] == batch &&
                          out.size[1] == rows && out.size[2] == columns,
                      "the shapes do not fit")) {
        return;
    }
    for (int64_t n = 0; n < batch; ++n) {
        for (int64_t row = 0; row < rows; ++row) {
            for (int64_t column = 0; column < columns; ++column) {
                const int8_t *line = a.as<int8_t>() + (n * rows + row) * length;
                const int8_t *other = b.as<int8_t>() + (n * columns + column) * length;
                const int32_t sum = dot(line, other, length, a_offset, b_offset);
                out.as<int8_t>()[(n * rows + row) * columns + column] =
                    stored(requantize(sum, multiplier, shift), out_offset, -128, 127);
            }
        }
    }
}

} // namespace host_ops
