// Stands for TFLM's resolver: it counts, and has the methods that tests need.
#pragma once
#include <cstring>

#include "tensorflow/lite/micro/kernels/neutron/neutron.h"
typedef enum { kTfLiteOk = 0, kTfLiteError = 1 } TfLiteStatus;
namespace tflite {
template <unsigned int tOpCount> class MicroMutableOpResolver {
  public:
    TfLiteStatus AddDequantize() { return Add(); }
    TfLiteStatus AddSoftmax() { return Add(); }
    TfLiteStatus AddCustom(const char *name, const TFLMRegistration *registration) {
        return std::strcmp(name, "NeutronGraph") || !registration ? kTfLiteError : Add();
    }

  private:
    TfLiteStatus Add() { return used_++ < tOpCount ? kTfLiteOk : kTfLiteError; }
    unsigned int used_ = 0;
};
} // namespace tflite
