// Stands for TFLM's interpreter: sizes and outputs come from files that the environment names.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"
struct TfLiteTensor {
    union {
        void *data;
        uint8_t *uint8;
    } data;
    size_t bytes;
};
namespace tflite {
class MicroInterpreter {
  public:
    template <typename Resolver>
    MicroInterpreter(const Model *, const Resolver &, uint8_t *arena, size_t bytes)
        : arena_(arena), left_(bytes) {}
    // STANDIN_SIZES: the bytes of inputs, then of outputs, each list with its length in front.
    TfLiteStatus AllocateTensors() {
        FILE *file = std::fopen(std::getenv("STANDIN_SIZES"), "r");
        for (auto *tensors : {&inputs_, &outputs_}) {
            int count = 0;
            if (!file || std::fscanf(file, "%d", &count) != 1) return kTfLiteError;
            tensors->resize(count);
            for (TfLiteTensor &tensor : *tensors) {
                if (std::fscanf(file, "%zu", &tensor.bytes) != 1 || tensor.bytes > left_)
                    return kTfLiteError;
                tensor.data.data = arena_ + used_;
                used_ += tensor.bytes;
                left_ -= tensor.bytes;
            }
        }
        std::fclose(file);
        answers_ = std::fopen(std::getenv("STANDIN_OUTPUTS"), "rb");
        return answers_ ? kTfLiteOk : kTfLiteError;
    }
    size_t arena_used_bytes() const { return used_; }
    TfLiteTensor *input(size_t at) { return &inputs_[at]; }
    TfLiteTensor *output(size_t at) { return &outputs_[at]; }
    TfLiteStatus Invoke() {
        for (TfLiteTensor &tensor : outputs_)
            if (std::fread(tensor.data.data, 1, tensor.bytes, answers_) != tensor.bytes)
                return kTfLiteError;
        return kTfLiteOk;
    }

  private:
    uint8_t *arena_;
    size_t left_, used_ = 0;
    std::vector<TfLiteTensor> inputs_, outputs_;
    FILE *answers_ = nullptr;
};
} // namespace tflite
