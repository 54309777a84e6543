// Runs `forward` of an ExecuTorch program and prints every output as bytes.
//
//   cpp_runner model.pte [input0.bin input1.bin ...]
//
// Input files hold the raw bytes of the tensors, in the program's own memory order; inputs without
// a file are zeros.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

using executorch::aten::Tensor;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::TensorInfo;

namespace {

bool read_file(const char *path, std::vector<char> &bytes) {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    return file.is_open();
}

// A tensor of the shape, type and dim order that the program declares.
executorch::extension::TensorPtr make_input(const TensorInfo &info, std::vector<char> &bytes) {
    return executorch::extension::make_tensor_ptr(
        {info.sizes().begin(), info.sizes().end()}, bytes.data(),
        {info.dim_order().begin(), info.dim_order().end()}, {}, info.scalar_type());
}

void print_output(size_t index, const Tensor &tensor) {
    std::printf("output %zu, %zu bytes:", index, static_cast<size_t>(tensor.nbytes()));
    const auto *bytes = static_cast<const unsigned char *>(tensor.const_data_ptr());
    for (size_t i = 0; i < tensor.nbytes(); ++i) {
        std::printf(" %02x", bytes[i]);
    }
    std::printf("\n");
}

int fail(const std::string &what, Error error) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), executorch::runtime::to_string(error));
    return 1;
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s model.pte [input0.bin ...]\n", argv[0]);
        return 2;
    }
    Module module(argv[1]);
    const auto meta = module.method_meta("forward");
    if (!meta.ok()) {
        return fail(argv[1], meta.error());
    }
    std::vector<std::vector<char>> storage(meta->num_inputs());
    std::vector<executorch::extension::TensorPtr> tensors;
    std::vector<EValue> inputs;
    for (size_t i = 0; i < meta->num_inputs(); ++i) {
        const auto info = meta->input_tensor_meta(i);
        if (!info.ok()) {
            return fail("input " + std::to_string(i), info.error());
        }
        const char *path = static_cast<int>(i) + 2 < argc ? argv[i + 2] : nullptr;
        if (path != nullptr && !read_file(path, storage[i])) {
            return fail(path, Error::AccessFailed);
        }
        if (path != nullptr && storage[i].size() != info->nbytes()) {
            std::fprintf(stderr, "%s: %zu bytes, the program wants %zu\n", path, storage[i].size(),
                         info->nbytes());
            return 1;
        }
        storage[i].resize(info->nbytes());
        tensors.push_back(make_input(*info, storage[i]));
        inputs.emplace_back(*tensors.back());
    }
    const auto outputs = module.forward(inputs);
    if (!outputs.ok()) {
        return fail(argv[1], outputs.error());
    }
    for (size_t i = 0; i < outputs->size(); ++i) {
        print_output(i, (*outputs)[i].toTensor());
    }
    return 0;
}
