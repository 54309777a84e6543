/* Fuzz target: a payload from anywhere, loaded as a delegate and run on tensors of the sizes that
 * its own table names. */
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "delegate/model.h"
#include "sealed.h"

namespace {

using executorch::aten::ScalarType;
using executorch::aten::TensorImpl;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using openneutron::Payload;

constexpr std::array<ScalarType, 7> kTypes = {ScalarType::Char, ScalarType::Byte, ScalarType::Short,
                                              ScalarType::Int,  ScalarType::Long, ScalarType::Float,
                                              ScalarType::Bool}; /* by NEUTRON_DTYPE_* */

/* A program's tensor around memory that ends where the tensor does. */
class Argument {
  public:
    Argument(const NeutronTensorInfo &info, bool channels_last, bool in_order)
        : sizes_(info.dims, info.dims + info.rank), order_(info.rank),
          data_(fuzz_exactly(nullptr, info.bytes)) {
        const bool move = channels_last && info.rank >= 3;
        if (move) { /* the graph's N..C is the program's NC.. */
            sizes_.insert(sizes_.begin() + 1, sizes_.back());
            sizes_.pop_back();
        }
        for (size_t at = 0; at < order_.size(); ++at) {
            order_[at] = static_cast<uint8_t>(at);
        }
        if (move && in_order) {
            order_.erase(order_.begin() + 1);
            order_.push_back(1);
        }
        impl_ =
            std::make_unique<TensorImpl>(kTypes[info.dtype], static_cast<ssize_t>(sizes_.size()),
                                         sizes_.data(), data_, order_.data());
        value_ = EValue(executorch::aten::Tensor(impl_.get()));
    }
    ~Argument() { std::free(data_); }
    Argument(const Argument &) = delete;
    Argument &operator=(const Argument &) = delete;

    EValue *value() { return &value_; }

  private:
    std::vector<int32_t> sizes_;
    std::vector<uint8_t> order_;
    void *data_;
    std::unique_ptr<TensorImpl> impl_;
    EValue value_;
};

/* The rows of a model's tensor table; empty when they ask for more memory than a try is worth. */
std::vector<NeutronTensorInfo> tensors_of(const Payload &payload) {
    const NeutronModelConfig config{payload.microcode.data, payload.weights.data,
                                    payload.kernels.data, 0};
    const NeutronModelSizes sizes{payload.microcode.size, payload.weights.size,
                                  payload.kernels.size, payload.scratch_bytes,
                                  payload.prefetch_bytes};
    NeutronModelHandle handle = nullptr;
    if (neutronModelPrepareChecked(&config, &sizes, &handle) != NEUTRON_NONE) {
        std::abort(); /* the delegate has just taken it */
    }
    std::vector<NeutronTensorInfo> found(static_cast<size_t>(payload.inputs) + payload.outputs);
    uint64_t bytes = 0;
    for (uint32_t row = 0; row < found.size(); ++row) {
        if (neutronModelGetTensor(handle, row, &found[row]) != NEUTRON_NONE) {
            std::abort();
        }
        bytes += found[row].bytes;
    }
    neutronModelUnprepare(handle);
    if (bytes > FUZZ_REGION_BYTES) {
        found.clear();
    }
    return found;
}

void run(openneutron::Model &model, const uint8_t *data, size_t size, bool in_order) {
    Payload payload;
    openneutron::Apart apart;
    if (openneutron::find_apart(data, size, apart) != executorch::runtime::Error::Ok ||
        openneutron::parse_payload(data, apart, payload) != executorch::runtime::Error::Ok) {
        std::abort();
    }
    const std::vector<NeutronTensorInfo> tensors = tensors_of(payload);
    if (tensors.empty()) {
        return;
    }
    EValue none;
    std::deque<Argument> arguments;
    std::vector<EValue *> values(payload.input_args + 256u, &none);
    for (size_t row = 0; row < tensors.size(); ++row) {
        const bool output = row >= payload.inputs;
        const size_t at = output ? payload.input_args + payload.output_map[row - payload.inputs]
                                 : payload.input_map[row];
        arguments.emplace_back(tensors[row],
                               payload.input_formats[row] == openneutron::kChannelsLast, in_order);
        values[at] = arguments.back().value();
    }
    /* Memory of the model's own, the runtime's, and the runtime's where that is too small. */
    (void)model.run({values.data(), values.size()}, nullptr, nullptr);
    for (const size_t bytes : {size_t{FUZZ_REGION_BYTES}, size % 4096 + 1}) {
        void *memory = fuzz_exactly(nullptr, bytes);
        executorch::runtime::MemoryAllocator lent(static_cast<uint32_t>(bytes),
                                                  static_cast<uint8_t *>(memory));
        (void)model.run({values.data(), values.size()}, nullptr, &lent);
        std::free(memory);
    }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
    fuzz::silence();
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t limit, unsigned seed) {
    return fuzz_mutate(data, size, limit, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    uint8_t *data = static_cast<uint8_t *>(fuzz_exactly(input, size));
    fuzz::seal(data, size);
    FreeableBuffer processed(data, size, nullptr);
    executorch::runtime::Result<openneutron::Model *> model =
        openneutron::Model::load(processed, nullptr);
    if (model.ok()) {
        run(*model.get(), data, size, size % 32 < 16);
        delete model.get();
    }
    std::free(data);
    return 0;
}
