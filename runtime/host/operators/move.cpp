/* Transpose and pad: stored values change their places. */
#include "kernels.h"

namespace host_ops {

namespace {

constexpr int kPadRank = 4; /* the operator's lists always have four entries */

/* When ExecuTorch's Cortex-M passes call a tensor channels-last: by its dim order, or because both
 * orders are the same bytes. Lists of paddings are given in the order of memory then. */
bool is_channels_last(const View &view) {
    if (view.rank != 4) {
        return false;
    }
    if (view.size[1] == 1 || (view.size[2] == 1 && view.size[3] == 1)) {
        return true;
    }
    return view.stride[1] <= view.stride[3] && view.stride[1] <= view.stride[2] &&
           view.stride[2] >= view.stride[3];
}

int64_t logical(const Ints &list, const View &view, int dim) {
    static const int kPlace[4] = {0, 3, 1, 2}; /* where N, C, H, W stand among N, H, W, C */
    if (is_channels_last(view)) {
        return list[kPlace[dim]];
    }
    return list[kPadRank - view.rank + dim];
}

} // namespace

void transpose(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::transpose");
    const View x = call.tensor();
    const Ints order = call.integers(x.rank);
    const View out = call.tensor();
    if (!call.ok() ||
        !call.require(order.count == x.rank && out.rank == x.rank, "the ranks differ")) {
        return;
    }
    View turned = out;
    bool seen[kMaxRank] = {};
    for (int d = 0; d < x.rank; ++d) {
        const int64_t from = order[d] < 0 ? order[d] + x.rank : order[d];
        if (!call.require(from >= 0 && from < x.rank && !seen[from],
                          "the order is no permutation") ||
            !call.require(x.size[from] == out.size[d], "the shapes do not fit")) {
            return;
        }
        seen[from] = true;
        turned.stride[d] = x.stride[from];
    }
    const View views[2] = {out, turned};
    const int8_t *source = x.as<int8_t>();
    int8_t *result = out.as<int8_t>();
    for_each(views, [&](const int64_t *at) { result[at[0]] = source[at[1]]; });
}

void pad(Context &context, Stack stack) {
    Arguments call(context, stack, "cortex_m::pad");
    const View x = call.tensor();
    const Ints before = call.integers(kPadRank), after = call.integers(kPadRank);
    const int64_t value = call.integer();
    const View out = call.tensor();
    if (!call.ok() ||
        !call.require(x.rank >= 1 && x.rank <= kPadRank && out.rank == x.rank,
                      "the ranks do not fit") ||
        !call.require(value >= -128 && value <= 127, "the padding value is not INT8")) {
        return;
    }
    int64_t start = 0;
    View inside = out;
    for (int d = 0; d < x.rank; ++d) {
        const int64_t first = logical(before, x, d), last = logical(after, x, d);
        if (!call.require(first >= 0 && last >= 0 && x.size[d] + first + last == out.size[d],
                          "the shapes do not fit")) {
            return;
        }
        inside.size[d] = x.size[d];
        start += first * out.stride[d];
    }
    int8_t *result = out.as<int8_t>();
    const View whole[1] = {out};
    for_each(whole, [&](const int64_t *at) { result[at[0]] = static_cast<int8_t>(value); });
    const View views[2] = {inside, x};
    const int8_t *source = x.as<int8_t>();
    for_each(views, [&](const int64_t *at) { result[start + at[0]] = source[at[1]]; });
}

} // namespace host_ops
