// Stands for the Neutron operator's header.
#pragma once
struct TFLMRegistration {};
namespace tflite {
inline const char *GetString_NEUTRON_GRAPH() { return "NeutronGraph"; }
inline TFLMRegistration *Register_NEUTRON_GRAPH() {
    static TFLMRegistration made;
    return &made;
}
} // namespace tflite
