#include "model.h"

#include <cstring>
#include <new>

#include "events.h"
#include "message.h"

extern "C" {
#include "machine.h"
}

namespace openneutron {

using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::EventTracer;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::MemoryAllocator;
using executorch::runtime::NamedDataMap;
using executorch::runtime::Result;
using executorch::runtime::Span;

namespace {

constexpr size_t kDetailBytes = 256; /* the driver's longest detail has 200 */

Error code_of(NeutronError error) {
    if (NEUTRON_COMPONENT(error) != NEUTRON_COMPONENT_DRIVER) {
        return Error::Internal;
    }
    switch (NEUTRON_CATEGORY(error)) {
    case NEUTRON_DRIVER_UNSUPPORTED:
    case NEUTRON_DRIVER_UNKNOWN_ARCHITECTURE: return Error::DelegateInvalidCompatibility;
    case NEUTRON_DRIVER_MICROCODE:
    case NEUTRON_DRIVER_INVALID: return Error::InvalidProgram;
    case NEUTRON_DRIVER_BAD_HANDLE: return Error::DelegateInvalidHandle;
    case NEUTRON_DRIVER_NO_MEMORY: return Error::DelegateMemoryAllocationFailed;
    default: return Error::Internal;
    }
}

/* Log the driver's sentence and return the nearest ExecuTorch code. */
Error failed(const char *doing, NeutronError error, const char *detail) {
    ON_LOG("could not %s: %s%s%s (driver error 0x%x)", doing, neutronErrorString(error),
           detail[0] != '\0' ? ": " : "", detail, static_cast<unsigned>(error));
    return code_of(error);
}

} // namespace

Result<Model *> Model::load(FreeableBuffer &processed, const NamedDataMap *named) {
    std::unique_ptr<Model> model(new (std::nothrow) Model);
    ON_REQUIRE(model != nullptr, DelegateMemoryAllocationFailed, "no memory for a model");
    ON_TRY(model->prepare(processed, named));
    return model.release();
}

Model::~Model() {
    if (handle_ != nullptr) {
        neutronModelUnprepare(handle_);
    }
}

Error Model::prepare(FreeableBuffer &processed, const NamedDataMap *named) {
    const size_t size = processed.size();
    const uint8_t *data = static_cast<const uint8_t *>(processed.data());
    ON_REQUIRE(data != nullptr, InvalidProgram, "the payload is empty");
    if (reinterpret_cast<uintptr_t>(data) % kAlignment != 0) {
        ON_REQUIRE(payload_.allocate(size), DelegateMemoryAllocationFailed,
                   "no memory for a payload of %zu bytes", size);
        std::memcpy(payload_.data(), data, size);
        data = static_cast<const uint8_t *>(payload_.data());
        processed.Free();
    }
    Apart apart;
    ON_TRY(find_apart(data, size, apart));
    if (apart.key[0] != '\0') {
        Result<std::shared_ptr<Shared>> shared = Shared::of(named, apart.key);
        if (!shared.ok()) {
            return shared.error();
        }
        shared_ = shared.get();
        const Block weights = shared_->weights();
        ON_REQUIRE(apart.size <= weights.size, InvalidProgram,
                   "the named data \"%s\" has %zu bytes, the payload needs %zu", apart.key,
                   weights.size, apart.size);
        apart.data = weights.data;
    }
    Payload payload;
    ON_TRY(parse_payload(data, apart, payload));

    NeutronModelConfig config{};
    config.microcode = payload.microcode.data;
    config.weights = payload.weights.data;
    config.kernels = payload.kernels.data;
    config.timeoutSeconds = NEUTRON_TIMEOUT_DEFAULT;
    NeutronModelSizes sizes{};
    sizes.microcode = payload.microcode.size;
    sizes.weights = payload.weights.size;
    sizes.kernels = payload.kernels.size;
    sizes.scratch = payload.scratch_bytes;
    sizes.prefetch = payload.prefetch_bytes;
    NeutronError error = neutronModelPrepareChecked(&config, &sizes, &handle_);
    if (error != NEUTRON_NONE) {
        char detail[kDetailBytes] = "";
        neutronModelCheck(&config, &sizes, detail, sizeof(detail));
        return failed("prepare the payload", error, detail);
    }
    error = neutronModelGetInfo(handle_, &info_);
    if (error != NEUTRON_NONE) {
        return failed("read the model's sizes", error, neutronModelErrorDetail(handle_));
    }
    if (shared_ != nullptr) {
        ON_TRY(shared_->hold_state(handle_, info_.stateBytes));
    }
    const nm_target *target = nm_target_find(info_.target);
    ON_REQUIRE(target != nullptr, DelegateInvalidCompatibility, "no machine model for target %s",
               info_.target);
    clock_hz_ = target->clock_hz;
    ON_TRY(add_ports(payload));
    return add_buffers();
}

Error Model::add_ports(const Payload &payload) {
    ON_REQUIRE(info_.inputs == payload.inputs && info_.outputs == payload.outputs, InvalidProgram,
               "the payload's header has %u inputs and %u outputs, its microcode %u and %u",
               payload.inputs, payload.outputs, info_.inputs, info_.outputs);
    inputs_.reserve(info_.inputs);
    outputs_.reserve(info_.outputs);
    for (uint32_t row = 0; row < info_.inputs + info_.outputs; ++row) {
        NeutronTensorInfo tensor;
        const NeutronError error = neutronModelGetTensor(handle_, row, &tensor);
        if (error != NEUTRON_NONE) {
            return failed("read the tensor table", error, neutronModelErrorDetail(handle_));
        }
        if (row < info_.inputs) {
            inputs_.emplace_back(tensor, payload.input_formats[row] == kChannelsLast,
                                 payload.input_map[row]);
        } else {
            const uint32_t at = row - info_.inputs;
            const size_t argument =
                static_cast<size_t>(payload.input_args) + payload.output_map[at];
            outputs_.emplace_back(tensor, payload.output_formats[at] == kChannelsLast, argument);
        }
    }
    return Error::Ok;
}

Error Model::add_buffers() {
    ON_REQUIRE(profile_.allocate(info_.profileBytes) && debug_.allocate(info_.debugBytes),
               DelegateMemoryAllocationFailed, "no memory for %u bytes of profile and %u of debug",
               info_.profileBytes, info_.debugBytes);
    input_data_.resize(inputs_.size());
    output_data_.resize(outputs_.size());
    output_data_.push_back(nullptr); /* scratch, found anew for each run */
    output_data_.push_back(profile_.data());
    output_data_.push_back(debug_.data());
    return Error::Ok;
}

Error Model::bind(Span<EValue *> args, MemoryAllocator *temporary, NeutronDataConfig &data) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
        ON_TRY(inputs_[i].bind(args, temporary));
        input_data_[i] = inputs_[i].data();
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
        ON_TRY(outputs_[i].bind(args, temporary));
        output_data_[i] = outputs_[i].data();
    }
    void *scratch = scratch_.for_run(temporary, info_.scratchBytes);
    data.scratchWeights = prefetch_.for_run(temporary, info_.prefetchBytes);
    ON_REQUIRE((scratch != nullptr || info_.scratchBytes == 0) &&
                   (data.scratchWeights != nullptr || info_.prefetchBytes == 0),
               DelegateMemoryAllocationFailed,
               "no memory for %u bytes of scratch and %u of prefetch", info_.scratchBytes,
               info_.prefetchBytes);
    output_data_[outputs_.size()] = scratch;
    data.inputs = input_data_.data();
    data.outputs = output_data_.data();
    return Error::Ok;
}

Error Model::run(Span<EValue *> args, EventTracer *tracer, MemoryAllocator *temporary) {
    NeutronDataConfig data{};
    ON_TRY(bind(args, temporary, data));
    for (const Port &input : inputs_) {
        input.read();
    }
    NeutronError error;
    if (info_.profiling && tracer != nullptr) {
        const EventRecorder recorder(tracer, handle_, clock_hz_);
        error = neutronRunBlocking(handle_, &data);
    } else {
        error = neutronRunBlocking(handle_, &data);
    }
    if (error != NEUTRON_NONE) {
        return failed("run", error, neutronModelErrorDetail(handle_));
    }
    for (const Port &output : outputs_) {
        output.write();
    }
    return Error::Ok;
}

Error Model::reset() {
    const NeutronError error = neutronStateReset(handle_);
    return error == NEUTRON_NONE
               ? Error::Ok
               : failed("reset the state", error, neutronModelErrorDetail(handle_));
}

} // namespace openneutron
