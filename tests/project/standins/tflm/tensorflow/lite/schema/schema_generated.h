// Stands for TensorFlow Lite's schema.
#pragma once
#include <cstdint>
#define TFLITE_SCHEMA_VERSION (3)
namespace tflite {
struct Model {
    uint32_t version() const { return TFLITE_SCHEMA_VERSION; }
};
inline const Model *GetModel(const void *data) { return static_cast<const Model *>(data); }
} // namespace tflite
