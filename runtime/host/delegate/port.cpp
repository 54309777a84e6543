#include "port.h"

#include <cstdio>
#include <cstring>

#include "dtype.h"
#include "message.h"

namespace openneutron {

using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::MemoryAllocator;
using executorch::runtime::Span;

Port::Port(const NeutronTensorInfo &tensor, bool channels_last, size_t argument)
    : tensor_(tensor), channels_last_(channels_last), argument_(argument) {}

Error Port::bind(Span<EValue *> args, MemoryAllocator *temporary) {
    char what[48];
    std::snprintf(what, sizeof(what), "%s %u (argument %zu)", tensor_.isOutput ? "output" : "input",
                  tensor_.index, argument_);
    ON_REQUIRE(argument_ < args.size(), InvalidArgument,
               "%s is missing: the program hands over %zu arguments", what,
               static_cast<size_t>(args.size()));
    ON_REQUIRE(args[argument_]->isTensor(), InvalidArgument, "%s is not a tensor", what);
    const Tensor &tensor = args[argument_]->toTensor();
    ON_TRY(check(tensor, what));
    ON_TRY(plan_transpose(tensor, channels_last_, what, transpose_));
    outside_ = const_cast<void *>(tensor.const_data_ptr());
    ON_REQUIRE(outside_ != nullptr, InvalidArgument, "%s has no memory", what);
    copied_ = transpose_.needed() || reinterpret_cast<uintptr_t>(outside_) % kAlignment != 0;
    copy_ = copied_ ? own_.for_run(temporary, tensor_.bytes) : nullptr;
    ON_REQUIRE(!copied_ || copy_ != nullptr, MemoryAllocationFailed,
               "no memory for a copy of %s (%u bytes)", what, tensor_.bytes);
    return Error::Ok;
}

Error Port::check(const Tensor &tensor, const char *what) const {
    const int dtype = dtype_of(tensor.scalar_type());
    ON_REQUIRE(dtype == tensor_.dtype, InvalidArgument,
               "%s has element type %s, the graph wants %s", what, dtype_name(dtype),
               dtype_name(tensor_.dtype));
    ON_REQUIRE(tensor.nbytes() == tensor_.bytes, InvalidArgument,
               "%s has %zu bytes, the graph wants %u", what, static_cast<size_t>(tensor.nbytes()),
               tensor_.bytes);
    if (channels_last_ && tensor.dim() >= 3 && tensor_.rank > 0) {
        const uint32_t channels = tensor_.dims[tensor_.rank - 1];
        ON_REQUIRE(tensor.size(1) == static_cast<int64_t>(channels), InvalidArgument,
                   "%s has %d channels, the graph wants %u", what, static_cast<int>(tensor.size(1)),
                   channels);
    }
    return Error::Ok;
}

void Port::read() const {
    if (!copied_) {
        return;
    }
    if (transpose_.needed()) {
        run_transpose(transpose_, /*back=*/false, outside_, copy_);
    } else {
        std::memcpy(copy_, outside_, tensor_.bytes);
    }
}

void Port::write() const {
    if (!copied_) {
        return;
    }
    if (transpose_.needed()) {
        run_transpose(transpose_, /*back=*/true, copy_, outside_);
    } else {
        std::memcpy(outside_, copy_, tensor_.bytes);
    }
}

} // namespace openneutron
