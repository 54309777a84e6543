/* Four-dimensional tensors as images: the _nhwc operators name their dimensions in another order
 * than the others. */
#pragma once

#include "arguments.h"

namespace host_ops {

struct Image {
    int8_t *data;
    int64_t batch, channels, height, width;
    int64_t step_n, step_c, step_h, step_w;

    int8_t *at(int64_t n, int64_t h, int64_t w) const {
        return data + n * step_n + h * step_h + w * step_w;
    }
};

inline Image image(const View &view, bool nhwc) {
    const int c = nhwc ? 3 : 1, h = nhwc ? 1 : 2, w = nhwc ? 2 : 3;
    return {view.as<int8_t>(), view.size[0],   view.size[c],   view.size[h],  view.size[w],
            view.stride[0],    view.stride[c], view.stride[h], view.stride[w]};
}

/* A list of two numbers, or of one that counts for both. */
struct Pair {
    int64_t h = 0, w = 0;
};

inline Pair pair(const Ints &list) {
    if (list.count == 0) {
        return {};
    }
    return {list[0], list.count > 1 ? list[1] : list[0]};
}

} // namespace host_ops
