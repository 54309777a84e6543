/* A tensor as the host kernels see it: where element (i, j, …) of the logical shape lies, whatever
 * its dim order. */
#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/exec_aten/exec_aten.h>

namespace host_ops {

constexpr int kMaxRank = 8; /* ExecuTorch allows 16; no cortex_m operator takes more than 4 */

struct View {
    void *data = nullptr;
    executorch::aten::ScalarType dtype = executorch::aten::ScalarType::Char;
    int rank = 0;
    int64_t size[kMaxRank] = {};
    int64_t stride[kMaxRank] = {};

    int64_t elements() const {
        int64_t count = 1;
        for (int d = 0; d < rank; ++d) {
            count *= size[d];
        }
        return count;
    }

    template <typename T> T *as() const { return static_cast<T *>(data); }

    bool same_shape(const View &other) const {
        if (rank != other.rank) {
            return false;
        }
        for (int d = 0; d < rank; ++d) {
            if (size[d] != other.size[d]) {
                return false;
            }
        }
        return true;
    }
};

/* The same elements under the shape of `out`: dimensions of size 1 (or missing in front) repeat.
 * False when they do not fit. */
bool broadcast(const View &source, const View &out, View *result);

/* Calls visit(offset of each view) for every element of the first view's shape, the last dimension
 * fastest. All views have that shape. */
template <int N, typename Visit> void for_each(const View (&views)[N], Visit visit) {
    const View &shape = views[0];
    const int64_t total = shape.elements();
    int64_t index[kMaxRank] = {};
    int64_t offset[N] = {};
    for (int64_t count = 0; count < total; ++count) {
        visit(offset);
        for (int d = shape.rank - 1; d >= 0; --d) {
            /* The rank is checked where a view is made. */
            ++index[d]; // NOLINT(clang-analyzer-security.ArrayBound)
            for (int v = 0; v < N; ++v) {
                offset[v] += views[v].stride[d];
            }
            if (index[d] < shape.size[d]) {
                break;
            }
            for (int v = 0; v < N; ++v) {
                offset[v] -= index[d] * views[v].stride[d];
            }
            index[d] = 0;
        }
    }
}

} // namespace host_ops
