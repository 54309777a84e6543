#include "arguments.h"

#include <limits>

#include <executorch/runtime/platform/log.h>

namespace host_ops {

using executorch::aten::ScalarType;
using executorch::runtime::Error;
using executorch::runtime::EValue;

bool broadcast(const View &source, const View &out, View *result) {
    if (source.rank > out.rank) {
        return false;
    }
    *result = out;
    result->data = source.data;
    result->dtype = source.dtype;
    const int missing = out.rank - source.rank;
    for (int d = 0; d < out.rank; ++d) {
        const int own = d - missing;
        if (own < 0 || (source.size[own] == 1 && out.size[d] != 1)) {
            result->stride[d] = 0;
        } else if (source.size[own] != out.size[d]) {
            return false;
        } else {
            result->stride[d] = source.stride[own];
        }
    }
    return true;
}

void Arguments::refuse(const char *sentence) {
    if (ok_) {
        ET_LOG(Error, "%s: argument %zu: %s", name_, at_ == 0 ? at_ : at_ - 1, sentence);
        context_.fail(Error::InvalidArgument);
        ok_ = false;
    }
}

void Arguments::fail(const char *sentence) {
    if (ok_) {
        ET_LOG(Error, "%s: %s", name_, sentence);
        context_.fail(Error::InvalidArgument);
        ok_ = false;
    }
}

EValue *Arguments::next() {
    if (!ok_) {
        return nullptr;
    }
    if (at_ >= stack_.size()) {
        refuse("the program gives too few arguments");
        return nullptr;
    }
    return stack_[at_++];
}

View Arguments::any_tensor() {
    View view;
    EValue *value = next();
    if (value == nullptr) {
        return view;
    }
    if (!value->isTensor()) {
        refuse("a tensor is expected");
        return view;
    }
    const auto tensor = value->toTensor();
    if (tensor.dim() > kMaxRank) {
        refuse("the tensor has more than 8 dimensions");
        return view;
    }
    view.rank = static_cast<int>(tensor.dim());
    view.dtype = tensor.scalar_type();
    for (int d = 0; d < view.rank; ++d) {
        view.size[d] = tensor.size(d);
        view.stride[d] = tensor.strides()[d];
    }
    view.data = const_cast<void *>(tensor.const_data_ptr());
    if (view.data == nullptr && view.elements() > 0) {
        refuse("the tensor has no memory");
    }
    return view;
}

View Arguments::tensor(ScalarType dtype) {
    const View view = any_tensor();
    if (ok_ && view.dtype != dtype) {
        refuse("the tensor has another type than the operator takes");
    }
    return view;
}

View Arguments::tensor() { return tensor(ScalarType::Char); }

View Arguments::optional_tensor(ScalarType dtype) {
    if (ok_ && at_ < stack_.size() && stack_[at_]->isNone()) {
        ++at_;
        return View();
    }
    return tensor(dtype);
}

int64_t Arguments::integer() {
    EValue *value = next();
    if (value != nullptr && !value->isInt()) {
        refuse("an integer is expected");
    }
    return ok_ && value != nullptr ? value->toInt() : 0;
}

int32_t Arguments::int32() {
    const int64_t value = integer();
    if (value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
        refuse("the number does not fit into 32 bits");
    }
    return static_cast<int32_t>(value);
}

double Arguments::number() {
    EValue *value = next();
    if (value != nullptr && !value->isDouble()) {
        refuse("a number is expected");
    }
    return ok_ && value != nullptr ? value->toDouble() : 0.0;
}

bool Arguments::boolean() {
    EValue *value = next();
    if (value != nullptr && !value->isBool()) {
        refuse("true or false is expected");
    }
    return ok_ && value != nullptr ? value->toBool() : false;
}

Ints Arguments::integers(int64_t at_least) {
    Ints list;
    EValue *value = next();
    if (value != nullptr && !value->isIntList()) {
        refuse("a list of integers is expected");
    }
    if (!ok_ || value == nullptr) {
        return list;
    }
    const auto found = value->toIntList();
    list.data = found.data();
    list.count = static_cast<int64_t>(found.size());
    if (list.count < at_least) {
        refuse("the list is too short");
    }
    return list;
}

void Arguments::skip() { next(); }

} // namespace host_ops
