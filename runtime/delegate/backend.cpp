/* The ExecuTorch backend `NeutronBackend`: registered when this library is loaded. */
#include <executorch/runtime/backend/interface.h>

#include "message.h"
#include "model.h"

namespace openneutron {
namespace {

using namespace executorch::runtime;

constexpr const char *kBackendName =
    "NeutronBackend"; /* the name programs are exported with, upstream's included */

class NeutronBackend final : public BackendInterface {
  public:
    bool is_available() const override { return true; }

    Result<DelegateHandle *> init(BackendInitContext &, FreeableBuffer *processed,
                                  ArrayRef<CompileSpec>) const override {
        Result<Model *> model = Model::load(*processed);
        if (!model.ok()) {
            return model.error();
        }
        return static_cast<DelegateHandle *>(model.get());
    }

    Error execute(BackendExecutionContext &context, DelegateHandle *handle,
                  Span<EValue *> args) const override {
        return static_cast<Model *>(handle)->run(args, context.event_tracer(),
                                                 context.get_temp_allocator());
    }

    void destroy(DelegateHandle *handle) const override { delete static_cast<Model *>(handle); }
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
