/* Fuzz target: microcode, weights and kernels from anywhere, through validation and, when accepted,
 * through runs of the plain and of the fastest loops and of a context too small for all
 * constants, in buffers of exactly the declared sizes.
 *
 * An input is microcode | weights | kernels, each padded to 16 bytes. The checksum is made right
 * before each try.
 */
#include "blocks.h"
#include "nk_simd.h"

enum { MAX_TENSORS = 512, SECONDS = 5 };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t limit, unsigned seed) {
    return fuzz_mutate(data, size, limit, seed);
}

static void choose(const char *isa) {
#if NK_HAS_SIMD
    if (!neutronSetIsa(isa)) abort();
#else
    (void)isa;
#endif
}

static void run(NeutronModelHandle model) {
    NeutronModelInfo info;
    NeutronTensorInfo tensor;
    void *tensors[MAX_TENSORS];
    uint64_t bytes = 0;
    if (neutronModelGetInfo(model, &info) != NEUTRON_NONE) abort();
    const uint32_t count = info.inputs + info.outputs;
    for (uint32_t at = 0; at < count; at++) {
        if (neutronModelGetTensor(model, at, &tensor) != NEUTRON_NONE) abort();
        bytes += tensor.bytes;
    }
    if (bytes > FUZZ_REGION_BYTES || info.profileBytes > FUZZ_REGION_BYTES) return;
    for (uint32_t at = 0; at < count; at++) {
        neutronModelGetTensor(model, at, &tensor);
        tensors[at] = fuzz_exactly(NULL, tensor.bytes);
    }
    void *outputs[MAX_TENSORS + 3];
    memcpy(outputs, tensors + info.inputs, info.outputs * sizeof *outputs);
    void *scratch = fuzz_exactly(NULL, info.scratchBytes),
         *prefetch = fuzz_exactly(NULL, info.prefetchBytes);
    void *profile = fuzz_exactly(NULL, info.profileBytes);
    outputs[info.outputs] = scratch;
    outputs[info.outputs + 1] = profile;
    outputs[info.outputs + 2] = NULL;
    const NeutronDataConfig data = {(const void **)tensors, outputs, NULL, prefetch};
    const NeutronError error = neutronRunBlocking(model, &data);
    if (neutronErrorName(error) == NULL) abort();
    for (uint32_t at = 0; at < count; at++) free(tensors[at]);
    free(scratch);
    free(prefetch);
    free(profile);
}

/* Again with constants that are decoded while it runs, in contexts of exactly the size for that:
 * block by block, some blocks at a time, call by call. */
static void run_windowed(const NeutronModelConfig *config, const NeutronModelSizes *sizes) {
    NeutronHeaderRecord header;
    size_t least = 0;
    memcpy(&header, config->microcode, sizeof header);
    if (header.section_count == 0) return;
    const size_t whole = neutronGetModelContextSize(config->microcode, sizes->microcode);
    if (neutronGetLeastContextSize(config, sizes, &least) != NEUTRON_NONE) return;
    const size_t calls =
        whole - fuzz_align16(header.plain_bytes) + fuzz_align16(header.window_bytes);
    const size_t sizes_tried[] = {least, (least + calls) / 2, calls};
    for (int at = 0; at < 3; at++) {
        NeutronModelHandle model = NULL;
        void *context = fuzz_exactly(NULL, sizes_tried[at]);
        if (neutronModelPrepareIn(context, sizes_tried[at], config, sizes, &model) ==
            NEUTRON_NONE) {
            run(model);
            neutronModelUnprepare(model);
        } else if (at == 0 && least < whole) {
            abort();
        }
        free(context);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    uint8_t *data = fuzz_exactly(input, size);
    fuzz_seal(data, size);
    const fuzz_blocks at = fuzz_split(data, size);
    uint8_t *blocks[] = {fuzz_exactly(data, at.microcode),
                         fuzz_exactly(data + at.weights_at, at.weights),
                         fuzz_exactly(data + at.kernels_at, at.kernels)};
    free(data);
    NeutronHeaderRecord header = {0};
    memcpy(&header, blocks[0], fuzz_least(at.microcode, sizeof header));
    const NeutronModelConfig config = {blocks[0], blocks[1], blocks[2], SECONDS};
    const NeutronModelSizes sizes = {at.microcode, at.weights, at.kernels, FUZZ_REGION_BYTES,
                                     FUZZ_REGION_BYTES};
    NeutronModelHandle model = NULL;
    char detail[256] = "";
    const bool large = header.plain_bytes > FUZZ_REGION_BYTES; /* decoded constants */
    const NeutronError error = neutronModelPrepareChecked(&config, &sizes, &model);
    if (large) {
        neutronModelUnprepare(model);
    } else if (error == NEUTRON_NONE) {
        choose("portable");
        run(model);
        choose(NULL);
        run(model);
        neutronModelUnprepare(model);
        run_windowed(&config, &sizes);
    } else if (neutronModelCheck(&config, &sizes, detail, sizeof detail) != error ||
               neutronErrorName(error) == NULL || detail[0] == 0) {
        abort(); /* every refusal has a name and says what was wrong where */
    }
    for (int block = 0; block < 3; block++) free(blocks[block]);
    return 0;
}
