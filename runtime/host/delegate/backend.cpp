/* The ExecuTorch backend `NeutronBackend`: registered when this library is loaded. */
#include <array>
#include <cstring>
#include <variant>

#include <executorch/runtime/backend/interface.h>

#include "message.h"
#include "model.h"
#include "streams.h"

namespace openneutron {
namespace {

using namespace executorch::runtime;

constexpr const char *kBackendName =
    "NeutronBackend"; /* the name programs are exported with, upstream's included */

constexpr const char *kStream = "stream"; /* a load option: the name of the model's state */
constexpr const char *kReset =
    "reset_state"; /* a backend option: true resets all states, a name those of that stream */

/* The name that the model's state gets, "" without one. */
Result<const char *> stream_of(const BackendInitContext &context) {
#if __has_include(<executorch/runtime/backend/backend_options_map.h>) /* ExecuTorch 1.5 on */
    Result<const char *> stream = context.get_runtime_spec<const char *>(kStream);
    ON_REQUIRE(stream.error() != Error::InvalidArgument, InvalidArgument,
               "the option %s is a name, a string", kStream);
    if (stream.ok()) {
        return stream;
    }
#else
    (void)context;
#endif
    return "";
}

class NeutronBackend final : public BackendInterface {
  public:
    bool is_available() const override { return true; }

    Result<DelegateHandle *> init(BackendInitContext &context, FreeableBuffer *processed,
                                  ArrayRef<CompileSpec>) const override {
        const Result<const char *> stream = stream_of(context);
        if (!stream.ok()) {
            return stream.error();
        }
        Result<Model *> model = Model::load(*processed, context.get_named_data_map());
        if (!model.ok()) {
            return model.error();
        }
        if (!add_to_streams(model.get(), stream.get())) {
            delete model.get();
            return Error::DelegateMemoryAllocationFailed;
        }
        return static_cast<DelegateHandle *>(model.get());
    }

    Error set_option(BackendOptionContext &, const Span<BackendOption> &options) override {
        for (const BackendOption &option : options) {
            ON_REQUIRE(std::strcmp(option.key, kReset) == 0, InvalidArgument,
                       "no option \"%s\", only %s", option.key, kReset);
            const auto *stream =
                std::get_if<std::array<char, kMaxOptionValueLength>>(&option.value);
            const bool *all = std::get_if<bool>(&option.value);
            ON_REQUIRE(stream != nullptr || (all != nullptr && *all), InvalidArgument,
                       "%s is true, or the name of a stream", kReset);
            ON_TRY(reset_streams(stream != nullptr ? stream->data() : nullptr));
        }
        return Error::Ok;
    }

    Error execute(BackendExecutionContext &context, DelegateHandle *handle,
                  Span<EValue *> args) const override {
        return static_cast<Model *>(handle)->run(args, context.event_tracer(),
                                                 context.get_temp_allocator());
    }

    void destroy(DelegateHandle *handle) const override {
        Model *model = static_cast<Model *>(handle);
        remove_from_streams(model);
        delete model;
    }
};

NeutronBackend backend;
// Registering allocates nothing and throws nothing.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization,cert-err58-cpp)
const Error registered = register_backend({kBackendName, &backend});

} // namespace
} // namespace openneutron

/* 1 when programs of this process reach this library, 0 when another one had registered the name
 * before. */
extern "C" __attribute__((visibility("default"))) int openneutron_registered(void) {
    return openneutron::registered == executorch::runtime::Error::Ok;
}
