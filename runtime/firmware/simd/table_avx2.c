/* The loops of AVX2. */
#include "loops.h"

#if NK_HAS_SIMD
const nk_simd nk_simd_avx2 = {
    .name = "avx2",
};
#endif
