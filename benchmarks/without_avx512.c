/* Answers CPUID instructions of this process as a processor without AVX-512 would. Compiled and
 * loaded by benchmarks/without_avx512.py, which finds the instructions.
 *
 * CPUID (0f a2) is replaced by UD2 (0f 0b), which is as long and raises SIGILL. The handler asks
 * the processor itself, clears bits of the answer and goes on behind the instruction. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define BIT(n) (1u << (n))

enum { LENGTH = 2, FIRST = 0x0f, SECOND_OF_CPUID = 0xa2, SECOND_OF_UD2 = 0x0b, FEATURES = 7 };

/* Names and places of the bits: Intel's Software Developer's Manual, volume 2, CPUID. AVX-VNNI goes
 * too: it is newer than AVX2, and what OPENNEUTRON_ISA=avx2 stands for does not have it. */
static const unsigned withheld[2][4] = {
    /* Sub-leaf 0. EBX: F, DQ, IFMA, PF, ER, CD, BW, VL; ECX: VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ;
     * EDX: 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, FP16, AMX-TILE, AMX-INT8. */
    {0, BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31),
     BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14),
     BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25)},
    /* Sub-leaf 1. EAX: AVX-VNNI, BF16, AMX-FP16, AVX-IFMA; EDX: AVX-VNNI-INT8, AVX-NE-CONVERT,
     * AMX-COMPLEX, AVX-VNNI-INT16, AVX10. */
    {BIT(4) | BIT(5) | BIT(21) | BIT(23), 0, 0, BIT(4) | BIT(5) | BIT(8) | BIT(10) | BIT(19)},
};

static const uintptr_t *held;
static size_t held_count;
static struct sigaction before;
static atomic_int asked;

static int is_held(uintptr_t at) {
    for (size_t i = 0; i < held_count; ++i)
        if (held[i] == at) return 1;
    return 0;
}

static void answer(int signal, siginfo_t *info, void *context) {
    (void)info;
    greg_t *const registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (!is_held((uintptr_t)registers[REG_RIP])) {
        /* Not one of ours: it comes again, for whoever was there before. */
        sigaction(signal, &before, NULL);
        return;
    }
    const unsigned leaf = (unsigned)registers[REG_RAX], part = (unsigned)registers[REG_RCX];
    unsigned found[4];
    __cpuid_count(leaf, part, found[0], found[1], found[2], found[3]);
    if (leaf == FEATURES && part < 2) {
        for (int i = 0; i < 4; ++i) found[i] &= ~withheld[part][i];
        if (part == 0) atomic_fetch_add(&asked, 1);
    }
    registers[REG_RAX] = found[0];
    registers[REG_RBX] = found[1];
    registers[REG_RCX] = found[2];
    registers[REG_RDX] = found[3];
    registers[REG_RIP] += LENGTH;
}

static int replace(uint8_t *at) {
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)at & ~(size - 1);
    const size_t bytes = (((uintptr_t)at + LENGTH - 1) & ~(size - 1)) + size - first;
    if (mprotect((void *)first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC)) return errno;
    at[1] = SECOND_OF_UD2;
    return mprotect((void *)first, bytes, PROT_READ | PROT_EXEC) ? errno : 0;
}

/* Replaces the CPUID instructions at these addresses, which must lie in readable, executable memory
 * that is not written. 0, or an errno: EINVAL where something else than CPUID stands (then nothing
 * was replaced), or that of the system. Call it once; `addresses` must stay. */
int hold(const uintptr_t *addresses, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const uint8_t *const at = (const uint8_t *)addresses[i];
        if (at[0] != FIRST || at[1] != SECOND_OF_CPUID) return EINVAL;
    }
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    held = addresses;
    held_count = count;
    if (sigaction(SIGILL, &action, &before)) return errno;
    for (size_t i = 0; i < count; ++i) {
        const int error = replace((uint8_t *)addresses[i]);
        if (error) return error;
    }
    return 0;
}

/* How often somebody asked for the features that AVX-512 is among. */
int questions(void) { return atomic_load(&asked); }
