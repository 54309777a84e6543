/* Which instruction set runs: asked of the processor once, or named by OPENNEUTRON_ISA. */
#include "nk_simd.h"

#if NK_HAS_SIMD

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#if NK_HAS_X86

static int has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* What the files *_avx512.c are compiled for. */
static int has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

#else

#if defined(__APPLE__)
#include <sys/sysctl.h>

static int has(const char *feature) {
    int answer = 0;
    size_t size = sizeof answer;
    return sysctlbyname(feature, &answer, &size, NULL, 0) == 0 && answer;
}

static int has_dotprod(void) { return has("hw.optional.arm.FEAT_DotProd"); }
static int has_i8mm(void) { return has_dotprod() && has("hw.optional.arm.FEAT_I8MM"); }
#else
#include <sys/auxv.h>

/* Bits of the kernel's hwcaps (Documentation/arch/arm64/elf_hwcaps.rst); older headers lack the
 * second. */
#define ASIMDDP (1ul << 20)
#define I8MM (1ul << 13)

static int has_dotprod(void) { return (getauxval(AT_HWCAP) & ASIMDDP) != 0; }
static int has_i8mm(void) { return has_dotprod() && (getauxval(AT_HWCAP2) & I8MM) != 0; }
#endif

#endif

static int always(void) { return 1; }

/* From the plainest to the best. */
static const struct {
    const char *name;
    int (*supported)(void);
    const nk_simd *loops;
} sets[] = {
    {"portable", always, NULL},
#if NK_HAS_X86
    {"avx2", has_avx2, &nk_simd_avx2},
    {"avx512vnni", has_avx512, &nk_simd_avx512},
#else
    {"neon", always, &nk_simd_neon},
    {"dotprod", has_dotprod, &nk_simd_dotprod},
    {"i8mm", has_i8mm, &nk_simd_i8mm},
#endif
};

#if NK_HAS_X86
#define NAMES "portable, avx2, avx512vnni"
#else
#define NAMES "portable, neon, dotprod, i8mm"
#endif

enum { SETS = sizeof sets / sizeof sets[0], UNDECIDED = -1 };

static atomic_int chosen = UNDECIDED;

static int best(void) {
    int at = SETS - 1;
    while (!sets[at].supported()) --at;
    return at;
}

static int find(const char *name) {
    for (int at = 0; at < SETS; ++at)
        if (strcmp(name, sets[at].name) == 0) return at;
    return UNDECIDED;
}

static int from_environment(void) {
    const char *name = getenv("OPENNEUTRON_ISA");
    if (!name || !*name) return best();
    const int at = find(name);
    if (at != UNDECIDED && sets[at].supported()) return at;
    fprintf(stderr, "openneutron: OPENNEUTRON_ISA is \"%s\", %s; using %s\n", name,
            at == UNDECIDED ? "which is none of " NAMES : "which this processor does not have",
            sets[best()].name);
    return best();
}

static int current(void) {
    int at = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (at == UNDECIDED) {
        /* Two threads may decide at once; they decide alike, and one of them stores. */
        const int decided = from_environment();
        if (atomic_compare_exchange_strong(&chosen, &at, decided)) at = decided;
    }
    return at;
}

const nk_simd *nk_simd_active(void) { return sets[current()].loops; }

bool neutronSetIsa(const char *name) {
    const int at = name ? find(name) : from_environment();
    if (at == UNDECIDED || !sets[at].supported()) return false;
    atomic_store(&chosen, at);
    return true;
}

const char *neutronGetIsa(void) { return sets[current()].name; }

#endif
