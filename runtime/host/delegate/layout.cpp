#include "layout.h"

#include "message.h"
#include "transpose.h"

namespace openneutron {
namespace {

using executorch::aten::Tensor;
using executorch::runtime::Error;

/* Whether the elements lie in the order that lists dimension 1 first or last after the batch;
 * dimensions of size 1 have no place in memory and do not count.
 */
bool lies_in_order(const Tensor &tensor, bool channels_last) {
    const auto sizes = tensor.sizes();
    const auto order = tensor.dim_order();
    const size_t rank = sizes.size();
    size_t at = 0;
    for (size_t position = 0; position < rank; ++position) {
        size_t dimension = position;
        if (channels_last && position >= 1) {
            dimension = position + 1 < rank ? position + 1 : 1;
        }
        if (sizes[dimension] == 1) {
            continue;
        }
        while (at < rank && sizes[order[at]] == 1) {
            ++at;
        }
        if (at == rank || order[at] != dimension) {
            return false;
        }
        ++at;
    }
    return true;
}

} // namespace

Error plan_transpose(const Tensor &tensor, bool channels_last, const char *what,
                     Transpose &transpose) {
    transpose = {1, 1, static_cast<size_t>(tensor.numel()),
                 static_cast<size_t>(tensor.element_size())};
    if (tensor.dim() < 3 || lies_in_order(tensor, channels_last)) {
        return Error::Ok;
    }
    ON_REQUIRE(lies_in_order(tensor, !channels_last), NotSupported,
               "%s has a dim order that is neither contiguous nor channels-last", what);
    const auto sizes = tensor.sizes();
    const size_t channels = static_cast<size_t>(sizes[1]);
    size_t pixels = 1;
    for (size_t i = 2; i < sizes.size(); ++i) {
        pixels *= static_cast<size_t>(sizes[i]);
    }
    transpose.images = static_cast<size_t>(sizes[0]);
    transpose.rows = channels_last ? channels : pixels;
    transpose.columns = channels_last ? pixels : channels;
    return Error::Ok;
}

void run_transpose(const Transpose &t, bool back, const void *source, void *target) {
    const size_t rows = back ? t.columns : t.rows;
    const size_t columns = back ? t.rows : t.columns;
    const size_t image = rows * columns * t.element_bytes;
    const uint8_t *from = static_cast<const uint8_t *>(source);
    uint8_t *to = static_cast<uint8_t *>(target);
    for (size_t i = 0; i < t.images; ++i, from += image, to += image) {
        transpose(from, to, rows, columns, t.element_bytes);
    }
}

} // namespace openneutron
