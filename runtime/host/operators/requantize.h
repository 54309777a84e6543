/* CMSIS-NN's requantization as ExecuTorch's reference operators define it: 64-bit product, rounded
 * to 31 bits, then a right shift that rounds half away from zero. It differs from LiteRT's: a
 * hybrid program has two definitions of exact. */
#pragma once

#include <cstdint>

namespace host_ops {

inline int32_t requantize(int64_t value, int64_t multiplier, int64_t shift) {
    const int64_t left = shift > 0 ? shift : 0;
    const int64_t right = shift < 0 ? -shift : 0;
    /* Unsigned, because shifting a negative number or leaving 64 bits is undefined in C++ and wraps
     * in the reference. */
    const uint64_t shifted = static_cast<uint64_t>(value) << left;
    const uint64_t product = shifted * static_cast<uint64_t>(multiplier) + (uint64_t{1} << 30);
    int64_t result = static_cast<int64_t>(product) >> 31;
    if (right > 0) {
        const int64_t mask = (int64_t{1} << right) - 1;
        const int64_t rest = result & mask;
        result >>= right;
        const int64_t threshold = (mask >> 1) + (result < 0 ? 1 : 0);
        result += rest > threshold ? 1 : 0;
    }
    return static_cast<int32_t>(result);
}

/* The shifts that the arithmetic above can do. */
inline bool shift_fits(int64_t shift) { return shift > -63 && shift < 63; }

/* The reference adds and clamps in 32 bits. */
inline int8_t stored(int32_t value, int32_t offset, int32_t low, int32_t high) {
    const int32_t moved =
        static_cast<int32_t>(static_cast<uint32_t>(value) + static_cast<uint32_t>(offset));
    const int32_t clamped = moved < low ? low : moved > high ? high : moved;
    return static_cast<int8_t>(clamped);
}

/* 32-bit sums wrap in the reference; signed overflow would be undefined here. */
inline int32_t wrapping_add(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

inline int32_t wrapping_mul(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

} // namespace host_ops
