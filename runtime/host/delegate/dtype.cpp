#include "dtype.h"

#define _Static_assert static_assert /* the generated header is C11 */
#include "generated/microcode.h"
#undef _Static_assert

namespace openneutron {

using executorch::aten::ScalarType;

int dtype_of(ScalarType type) {
    switch (type) {
    case ScalarType::Char: return NEUTRON_DTYPE_INT8;
    case ScalarType::Byte: return NEUTRON_DTYPE_UINT8;
    case ScalarType::Short: return NEUTRON_DTYPE_INT16;
    case ScalarType::Int: return NEUTRON_DTYPE_INT32;
    case ScalarType::Long: return NEUTRON_DTYPE_INT64;
    case ScalarType::Float: return NEUTRON_DTYPE_FLOAT32;
    case ScalarType::Bool: return NEUTRON_DTYPE_BOOL;
    default: return -1;
    }
}

const char *dtype_name(int dtype) {
    switch (dtype) {
    case NEUTRON_DTYPE_INT8: return "int8";
    case NEUTRON_DTYPE_UINT8: return "uint8";
    case NEUTRON_DTYPE_INT16: return "int16";
    case NEUTRON_DTYPE_INT32: return "int32";
    case NEUTRON_DTYPE_INT64: return "int64";
    case NEUTRON_DTYPE_FLOAT32: return "float32";
    case NEUTRON_DTYPE_BOOL: return "bool";
    default: return "unknown";
    }
}

} // namespace openneutron
