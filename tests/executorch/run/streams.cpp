// Two loads of one program that keeps a sum, each with a name: prints the sum after every step.
#include <cstdio>
#include <vector>

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/platform/runtime.h>

using executorch::extension::Module;
using executorch::runtime::BackendOptions;
using executorch::runtime::Error;

namespace {

constexpr const char *kBackend = "NeutronBackend";

template <typename Value> int load(Module &module, Value stream) {
    BackendOptions<1> options;
    executorch::runtime::LoadBackendOptionsMap map;
    if (options.set_option("stream", stream) != Error::Ok ||
        map.set_options(kBackend, options.view()) != Error::Ok || module.load(map) != Error::Ok) {
        return -1;
    }
    return static_cast<int>(module.load_method("forward"));
}

// One more frame of ones; the first element of the sum.
int step(Module &module) {
    std::vector<int8_t> ones(4, 10);
    auto frame = executorch::extension::make_tensor_ptr({1, 4}, ones.data(),
                                                        executorch::aten::ScalarType::Char);
    const auto outputs = module.forward(frame);
    return outputs.ok() ? (*outputs)[0].toTensor().const_data_ptr<int8_t>()[0] : -1;
}

template <size_t N, typename Value> int set(const char (&key)[N], Value value) {
    BackendOptions<1> options;
    if (options.set_option(key, value) != Error::Ok) {
        return -1;
    }
    return static_cast<int>(executorch::runtime::set_option(kBackend, options.view()));
}

} // namespace

int main(int, char **argv) {
    Module left(argv[1]), right(argv[1]), unnamed(argv[1]);
    std::printf("loaded %d %d\n", load(left, "left"), load(right, "right"));
    std::printf("a number for a name %d\n", load(unnamed, 7));
    for (int turn = 0; turn < 2; ++turn) {
        std::printf("sums %d %d\n", step(left), step(right));
    }
    std::printf("reset left %d\n", set("reset_state", "left"));
    std::printf("sums %d %d\n", step(left), step(right));
    std::printf("reset nobody %d\n", set("reset_state", "nobody"));
    std::printf("reset false %d\n", set("reset_state", false));
    std::printf("reset 1 %d\n", set("reset_state", 1));
    std::printf("threads %d\n", set("threads", 2));
    std::printf("sums %d %d\n", step(left), step(right));
    std::printf("reset all %d\n", set("reset_state", true));
    std::printf("sums %d %d\n", step(left), step(right));
    {
        Module third(argv[1]);
        std::printf("loaded %d\n", load(third, "third"));
        std::printf("reset third %d\n", set("reset_state", "third"));
    }
    std::printf("reset a model that is gone %d\n", set("reset_state", "third"));
    return 0;
}
