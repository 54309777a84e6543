/* Every loop of host/simd/ against the kernel's definition, byte for byte, on random calls: odd
 * channels, ragged widths, gaps between pixels and rows, rings, extreme weights, multipliers,
 * shifts, biases and clamps. Each operand is its own allocation of exactly the declared size, so
 * that the sanitizers see a byte too many. */
#include "check.h"
#include "nk_simd.h"

#if NK_HAS_SIMD

#include <stdlib.h>

#include "footprint.h"
#include "random_operands.h"

#define CASES 400 /* per kernel and instruction set; a few seconds under sanitizers */

/* What a random call is made of; the arrays outlive the call. */
typedef struct {
    nk_call call;
    int32_t params[NEUTRON_MAX_OPERANDS * 4];
    uint32_t output;
    int32_t (*kernel)(uint32_t verb, nk_call *call);
} scene;

static void start(scene *s, uint32_t output, int32_t (*kernel)(uint32_t verb, nk_call *call)) {
    release();
    memset(s, 0, sizeof *s);
    s->call.params = s->params;
    s->call.place = s->params; /* some place: constants are kept by it */
    s->call.units = s->call.length = 8;
    s->call.rounding = NEUTRON_ROUNDING_DOUBLE;
    s->output = output;
    s->kernel = kernel;
}

static void any_rows(scene *s, uint32_t height) {
    s->call.row0 = one_in(3) ? 0 : between(0, (int32_t)height - 1);
    s->call.row1 = one_in(3) ? (int32_t)height : between(s->call.row0 + 1, (int32_t)height);
}

#define KERNEL(name) int32_t nk_##name(uint32_t verb, nk_call *call)
KERNEL(conv2d);
KERNEL(depthwise_conv2d);
KERNEL(fully_connected);
KERNEL(max_pool2d);
KERNEL(avg_pool2d);
KERNEL(pool_sum);
KERNEL(add);
KERNEL(requantize);
KERNEL(lut);

static uint32_t out_size(uint32_t in, int32_t kernel, int32_t stride, int32_t dilation,
                         int32_t *pad) {
    const int32_t extent = (kernel - 1) * dilation + 1;
    *pad = one_in(3) ? 0 : between(0, extent - 1);
    const int32_t room = (int32_t)in + *pad + between(0, extent - 1) - extent;
    return room < 0 ? 1 : (uint32_t)(room / stride + 1);
}

/* The operands of a convolution whose window is given; `usual` ones are such as networks have. */
static void fill_conv2d(scene *s, uint32_t height, uint32_t width, uint32_t inputs,
                        uint32_t outputs, int usual) {
    nk_conv2d_params *p = (nk_conv2d_params *)(void *)s->params;
    const uint32_t batch = one_in(5) ? 2 : 1, groups = (uint32_t)p->groups;
    const uint32_t oh = out_size(height, p->kernel_h, p->stride_h, p->dilation_h, &p->pad_top);
    const uint32_t ow = out_size(width, p->kernel_w, p->stride_w, p->dilation_w, &p->pad_left);
    any_rows(s, oh);
    nk_operand *o = s->call.operands;
    o[NK_CONV2D_INPUT] = image(any_dtype(), batch, height, width, inputs * groups, 1);
    s->call.rounding = usual ? NEUTRON_ROUNDING_DOUBLE : any_rounding();
    o[NK_CONV2D_WEIGHTS] = flat((size_t)groups * nk_blocks(outputs, 8) *
                                (uint32_t)(p->kernel_h * p->kernel_w) * nk_blocks(inputs, 8) * 64);
    const int edges = one_in(4);
    if (edges) memset(o[NK_CONV2D_INPUT].data, 0, o[NK_CONV2D_INPUT].available);
    o[NK_CONV2D_TABLE] = table(outputs * groups, s->call.rounding, edges, usual);
    o[NK_CONV2D_LUT] = one_in(6) && !usual ? flat(256) : no_operand();
    o[NK_CONV2D_OUTPUT] = image(usual ? NEUTRON_DTYPE_INT8 : any_dtype(), batch, oh, ow,
                                outputs * groups, (uint32_t)(s->call.row1 - s->call.row0));
    p->input_zero = edges                                            ? 0
                    : o[NK_CONV2D_INPUT].dtype == NEUTRON_DTYPE_INT8 ? between(-128, 127)
                                                                     : between(0, 255);
    p->weights_zero = one_in(6) ? between(-128, 127) : 0;
    any_clamp(o[NK_CONV2D_OUTPUT].dtype, &p->output_zero, &p->clamp_low, &p->clamp_high);
    if (usual) {
        p->output_zero = one_in(2) ? -128 : between(-128, 127);
        p->clamp_low = -128, p->clamp_high = 127;
    }
}

static void make_conv2d(scene *s) {
    start(s, NK_CONV2D_OUTPUT, nk_conv2d);
    nk_conv2d_params *p = (nk_conv2d_params *)(void *)s->params;
    const int pointwise = one_in(3), big = one_in(4), usual = one_in(2);
    p->kernel_h = pointwise ? 1 : between(1, 5), p->kernel_w = pointwise ? 1 : between(1, 5);
    p->stride_h = one_in(2) ? 1 : between(1, 3), p->stride_w = one_in(2) ? 1 : between(1, 3);
    p->dilation_h = one_in(5) ? between(1, 3) : 1, p->dilation_w = one_in(5) ? between(1, 3) : 1;
    p->groups = one_in(5) ? between(1, 3) : 1;
    const uint32_t inputs =
        (uint32_t)(one_in(2) ? ANY_OF(1, 3, 8, 16, 24, 40) : between(1, big ? 300 : 40));
    const uint32_t outputs =
        (uint32_t)(one_in(2) ? ANY_OF(1, 8, 16, 24, 32, 40, 48) : between(1, big ? 120 : 50));
    const uint32_t height = (uint32_t)between(1, 9),
                   width = (uint32_t)(one_in(6) ? between(40, 120) : between(1, 30));
    fill_conv2d(s, height, width, inputs, outputs, usual);
}

/* Windows that are cut into tiles of 4 by 4. */
static void make_conv2d_3x3(scene *s) {
    start(s, NK_CONV2D_OUTPUT, nk_conv2d);
    nk_conv2d_params *p = (nk_conv2d_params *)(void *)s->params;
    p->kernel_h = p->kernel_w = 3;
    p->stride_h = p->stride_w = p->dilation_h = p->dilation_w = 1;
    p->groups = one_in(6) ? 2 : 1;
    const int extreme = one_in(8); /* sums as large as they can be */
    const uint32_t inputs = (uint32_t)(extreme     ? 128
                                       : one_in(3) ? 8 * between(2, 16)
                                                   : 16 * between(1, 3)),
                   outputs = (uint32_t)(one_in(2) ? 16 * between(1, 4) : between(16, 80));
    fill_conv2d(s, (uint32_t)between(4, 14),
                (uint32_t)(one_in(8) ? between(30, 90) : between(3, 14)), inputs, outputs, 1);
    nk_operand *o = s->call.operands;
    const size_t padded = o[NK_CONV2D_TABLE].available / 12;
    for (size_t c = 0; c < padded; ++c) { /* sums take the float form */
        const int32_t shift = -between(10, 14);
        memcpy(o[NK_CONV2D_TABLE].data + 4 * (2 * padded + c), &shift, 4);
    }
    if (extreme) {
        memset(o[NK_CONV2D_INPUT].data,
               o[NK_CONV2D_INPUT].dtype == NEUTRON_DTYPE_INT8 ? 0x80 : 0xFF,
               o[NK_CONV2D_INPUT].available);
        memset(o[NK_CONV2D_WEIGHTS].data, 0x80, o[NK_CONV2D_WEIGHTS].available);
    }
}

static void make_depthwise_conv2d(scene *s) {
    start(s, NK_DEPTHWISE_CONV2D_OUTPUT, nk_depthwise_conv2d);
    nk_depthwise_conv2d_params *p = (nk_depthwise_conv2d_params *)(void *)s->params;
    const int usual = !one_in(3), edges = one_in(4), plain = usual && !one_in(3);
    p->kernel_h = usual ? 3 : between(1, 7), p->kernel_w = usual ? 3 : between(1, 7);
    p->stride_h = between(1, 2), p->stride_w = one_in(8) ? 3 : between(1, 2);
    p->dilation_h = one_in(6) ? 2 : 1, p->dilation_w = one_in(6) ? 2 : 1;
    p->depth_multiplier = one_in(6) && !plain ? between(1, 4) : 1;
    const uint32_t channels =
        (uint32_t)(one_in(2) ? ANY_OF(8, 16, 24, 32, 64, 96, 128, 144) : between(1, 70));
    const uint32_t height = (uint32_t)between(1, 9),
                   width = (uint32_t)(one_in(6) ? between(40, 120) : between(1, 30));
    const uint32_t batch = one_in(5) ? 2 : 1, outputs = channels * (uint32_t)p->depth_multiplier;
    const uint32_t oh = out_size(height, p->kernel_h, p->stride_h, p->dilation_h, &p->pad_top);
    const uint32_t ow = out_size(width, p->kernel_w, p->stride_w, p->dilation_w, &p->pad_left);
    any_rows(s, oh);
    nk_operand *o = s->call.operands;
    o[NK_DEPTHWISE_CONV2D_INPUT] = image(any_dtype(), batch, height, width, channels, 1);
    s->call.rounding = plain ? NEUTRON_ROUNDING_DOUBLE : any_rounding();
    o[NK_DEPTHWISE_CONV2D_WEIGHTS] =
        flat((size_t)nk_blocks(outputs, 8) * 8 * (uint32_t)(p->kernel_h * p->kernel_w));
    if (edges) memset(o[NK_DEPTHWISE_CONV2D_INPUT].data, 0, o[NK_DEPTHWISE_CONV2D_INPUT].available);
    o[NK_DEPTHWISE_CONV2D_TABLE] = table(outputs, s->call.rounding, edges, plain);
    o[NK_DEPTHWISE_CONV2D_LUT] = one_in(6) && !plain ? flat(256) : no_operand();
    o[NK_DEPTHWISE_CONV2D_OUTPUT] =
        image(any_dtype(), batch, oh, ow, outputs, (uint32_t)(s->call.row1 - s->call.row0));
    p->input_zero = edges                                                      ? 0
                    : o[NK_DEPTHWISE_CONV2D_INPUT].dtype == NEUTRON_DTYPE_INT8 ? between(-128, 127)
                                                                               : between(0, 255);
    p->weights_zero = one_in(6) && !plain ? between(-128, 127) : 0;
    any_clamp(o[NK_DEPTHWISE_CONV2D_OUTPUT].dtype, &p->output_zero, &p->clamp_low, &p->clamp_high);
}

static void make_fully_connected(scene *s) {
    start(s, NK_FULLY_CONNECTED_OUTPUT, nk_fully_connected);
    nk_fully_connected_params *p = (nk_fully_connected_params *)(void *)s->params;
    const uint32_t height = (uint32_t)(one_in(3) ? between(2, 5) : 1),
                   width = (uint32_t)(one_in(3) ? between(2, 9) : 1);
    const uint32_t inputs = (uint32_t)(one_in(8) ? between(1000, 3000) : between(1, 200)),
                   outputs = (uint32_t)between(1, 90);
    any_rows(s, height);
    nk_operand *o = s->call.operands;
    o[NK_FULLY_CONNECTED_INPUT] = image(any_dtype(), 1, height, width, inputs, 1);
    s->call.rounding = any_rounding();
    o[NK_FULLY_CONNECTED_WEIGHTS] = flat((size_t)nk_blocks(outputs, 8) * nk_blocks(inputs, 8) * 64);
    o[NK_FULLY_CONNECTED_TABLE] = table(outputs, s->call.rounding, 0, 0);
    o[NK_FULLY_CONNECTED_LUT] = one_in(6) ? flat(256) : no_operand();
    o[NK_FULLY_CONNECTED_OUTPUT] =
        image(any_dtype(), 1, height, width, outputs, (uint32_t)(s->call.row1 - s->call.row0));
    p->weights_zero = one_in(6) ? between(-128, 127) : 0;
    any_clamp(o[NK_FULLY_CONNECTED_OUTPUT].dtype, &p->output_zero, &p->clamp_low, &p->clamp_high);
}

static void make_pool(scene *s, int largest) {
    start(s, NK_MAX_POOL2D_OUTPUT, largest ? nk_max_pool2d : nk_avg_pool2d);
    nk_max_pool2d_params *p =
        (nk_max_pool2d_params *)(void *)s->params; /* avg_pool2d has the same ones */
    p->kernel_h = between(1, 9), p->kernel_w = between(1, 9);
    p->stride_h = between(1, 3), p->stride_w = between(1, 3);
    const uint32_t channels = (uint32_t)between(1, 70), height = (uint32_t)between(1, 12),
                   width = (uint32_t)between(1, 40);
    const uint32_t oh = out_size(height, p->kernel_h, p->stride_h, 1, &p->pad_top);
    const uint32_t ow = out_size(width, p->kernel_w, p->stride_w, 1, &p->pad_left),
                   batch = one_in(5) ? 2 : 1;
    const uint8_t dtype = any_dtype();
    int32_t zero;
    any_rows(s, oh);
    nk_operand *o = s->call.operands;
    o[NK_MAX_POOL2D_INPUT] = image(dtype, batch, height, width, channels, 1);
    o[NK_MAX_POOL2D_LUT] = one_in(6) ? flat(256) : no_operand();
    o[NK_MAX_POOL2D_OUTPUT] = image(one_in(9) ? any_dtype() : dtype, batch, oh, ow, channels,
                                    (uint32_t)(s->call.row1 - s->call.row0));
    any_clamp(dtype, &zero, &p->clamp_low, &p->clamp_high);
}

static void make_max_pool2d(scene *s) { make_pool(s, 1); }
static void make_avg_pool2d(scene *s) { make_pool(s, 0); }

static void make_pool_sum(scene *s) {
    start(s, NK_POOL_SUM_OUTPUT, nk_pool_sum);
    const uint32_t height = (uint32_t)between(1, 12), width = (uint32_t)between(1, 12);
    const uint32_t channels = (uint32_t)(one_in(2) ? ANY_OF(8, 16, 64) : between(1, 40));
    any_rows(s, height);
    s->params[0] = (int32_t)width;
    s->call.operands[NK_POOL_SUM_INPUT] = image(any_dtype(), 1, height, width, channels, 1);
    nk_operand *out = &s->call.operands[NK_POOL_SUM_OUTPUT];
    *out = image(NEUTRON_DTYPE_INT32, 1, 1, 1, channels, 1);
    out->height = height;
}

/* A shape that broadcasts to the given one; `whole` keeps it. */
static nk_operand broadcast(uint8_t dtype, uint32_t batch, uint32_t height, uint32_t width,
                            uint32_t channels, int whole) {
    return image(dtype, whole || one_in(2) ? batch : 1, whole || one_in(2) ? height : 1,
                 whole || one_in(2) ? width : 1, whole || one_in(2) ? channels : 1, 1);
}

static void make_add(scene *s) {
    start(s, NK_ADD_OUTPUT, nk_add);
    nk_add_params *p = (nk_add_params *)(void *)s->params;
    const uint8_t dtype = any_dtype();
    const uint32_t batch = one_in(5) ? 2 : 1, height = (uint32_t)between(1, 6),
                   width = (uint32_t)between(1, 20);
    const uint32_t channels = (uint32_t)between(1, 40);
    any_rows(s, height);
    s->call.operands[NK_ADD_INPUT1] = broadcast(dtype, batch, height, width, channels, !one_in(4));
    s->call.operands[NK_ADD_INPUT2] = broadcast(dtype, batch, height, width, channels, !one_in(4));
    s->call.operands[NK_ADD_OUTPUT] =
        image(dtype, batch, height, width, channels, (uint32_t)(s->call.row1 - s->call.row0));
    p->zero1 = between(-128, 255), p->zero2 = between(-128, 255), p->subtract = one_in(2);
    p->multiplier1 = any_multiplier(), p->multiplier2 = any_multiplier(),
    p->output_multiplier = any_multiplier();
    p->shift1 = -between(0, one_in(4) ? 31 : 6), p->shift2 = -between(0, one_in(4) ? 31 : 6);
    p->output_shift = -(one_in(4) ? between(0, 31) : between(15, 22));
    if (one_in(2)) p->multiplier1 = 1 << 30, p->shift1 = 0;
    if (one_in(2)) p->multiplier2 = 1 << 30, p->shift2 = 0;
    any_clamp(dtype, &p->output_zero, &p->clamp_low, &p->clamp_high);
}

static void make_requantize(scene *s) {
    start(s, NK_REQUANTIZE_OUTPUT, nk_requantize);
    nk_requantize_params *p = (nk_requantize_params *)(void *)s->params;
    const uint32_t height = (uint32_t)between(1, 6), width = (uint32_t)between(1, 20),
                   channels = (uint32_t)between(1, 40);
    any_rows(s, height);
    s->call.operands[NK_REQUANTIZE_INPUT] = image(any_dtype(), 1, height, width, channels, 1);
    s->call.operands[NK_REQUANTIZE_OUTPUT] =
        image(any_dtype(), 1, height, width, channels, (uint32_t)(s->call.row1 - s->call.row0));
    p->input_zero = between(-128, 255);
    p->multiplier = one_in(4) ? 1 << 30 : any_multiplier();
    p->shift = one_in(4) ? 1 : between(-31, one_in(4) ? 30 : 4);
    any_clamp(s->call.operands[NK_REQUANTIZE_OUTPUT].dtype, &p->output_zero, &p->clamp_low,
              &p->clamp_high);
}

static void make_lut(scene *s) {
    start(s, NK_LUT_OUTPUT, nk_lut);
    const uint32_t height = (uint32_t)between(1, 6), width = (uint32_t)between(1, 20),
                   channels = (uint32_t)between(1, 90);
    any_rows(s, height);
    s->params[0] = 256;
    s->call.operands[NK_LUT_INPUT] = image(any_dtype(), 1, height, width, channels, 1);
    s->call.operands[NK_LUT_TABLE] = flat(256);
    s->call.operands[NK_LUT_OUTPUT] =
        image(any_dtype(), 1, height, width, channels, (uint32_t)(s->call.row1 - s->call.row0));
}

#include "scenes16.h"

/* Bytes of operand `o` as allocated. */
static size_t size_of(const nk_operand *o) { return o->available; }

/* The call's rows, in stripes of random height as a cascade's, so that constants kept between calls
 * are used. */
static int run_with(scene *s, const char *isa, const uint8_t *before) {
    nk_operand *out = &s->call.operands[s->output];
    const int32_t first = s->call.row0, last = s->call.row1;
    int ok = 1;
    memcpy(out->data, before, size_of(out));
    CHECK(neutronSetIsa(isa));
    while (s->call.row0 < last && ok) {
        s->call.row1 = one_in(2) ? last : between(s->call.row0 + 1, last);
        ok = s->kernel(NK_RUN, &s->call) == 0;
        s->call.row0 = s->call.row1;
    }
    s->call.row0 = first, s->call.row1 = last;
    return ok;
}

enum { SAME, DIFFERENT, REFUSED };

static uintptr_t models; /* so far, each with a handle of its own */

/* One random call under both. */
static int compare(scene *s, const char *isa) {
    nk_operand *out = &s->call.operands[s->output];
    const size_t size = size_of(out);
    if (s->kernel(NK_CHECK, &s->call) != 0) return REFUSED;
    uint8_t *before = malloc(size), *expected = malloc(size);
    memcpy(before, out->data, size);
    int ok = run_with(s, "portable", before);
    memcpy(expected, out->data, size);
    s->call.model = (const void *)++models; /* another one: nothing is kept of it */
    ok = ok && run_with(s, isa, before) && memcmp(expected, out->data, size) == 0;
    if (ok && one_in(4)) /* the next run, with what was kept */
        ok = run_with(s, isa, before) && memcmp(expected, out->data, size) == 0;
    free(before);
    free(expected);
    return ok ? SAME : DIFFERENT;
}

static const struct {
    const char *name;
    void (*make)(scene *s);
} kernels[] = {{"conv2d", make_conv2d},
               {"conv2d of 3 x 3", make_conv2d_3x3},
               {"depthwise_conv2d", make_depthwise_conv2d},
               {"fully_connected", make_fully_connected},
               {"max_pool2d", make_max_pool2d},
               {"avg_pool2d", make_avg_pool2d},
               {"pool_sum", make_pool_sum},
               {"add", make_add},
               {"requantize", make_requantize},
               {"lut", make_lut},
               {"conv2d16", make_conv2d16},
               {"depthwise_conv2d16", make_depthwise_conv2d16},
               {"fully_connected16", make_fully_connected16},
               {"max_pool2d16", make_max_pool2d16},
               {"avg_pool2d16", make_avg_pool2d16},
               {"pool_sum16", make_pool_sum16},
               {"add16", make_add16},
               {"requantize16", make_requantize16},
               {"lut16", make_lut16}};

static void loops_equal_definitions(const char *isa, uint32_t cases) {
    if (!neutronSetIsa(isa)) {
        printf("%s: not on this processor\n", isa);
        return;
    }
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; ++k) {
        uint32_t ran = 0;
        for (uint32_t i = 0; i < cases; ++i) {
            const uint64_t seed = state;
            scene s;
            kernels[k].make(&s);
            const int result = compare(&s, isa);
            ran += result != REFUSED;
            if (result != DIFFERENT) continue;
            ++check_failures;
            fprintf(stderr, "%s of %s differs from the definition, state %#" PRIx64 "\n",
                    kernels[k].name, isa, seed);
            break;
        }
        CHECK(ran >= cases / 2); /* a kernel may refuse zero points and clamps beyond its type */
    }
    release();
}

/* An ordinary layer must be taken: a loop that refuses everything would pass the comparison. */
static void ordinary_layers_are_taken(const char *isa) {
    if (!neutronSetIsa(isa)) return;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < 50; ++i) {
        scene s;
        make_conv2d(&s);
        nk_conv2d_params *p = (nk_conv2d_params *)(void *)s.params;
        p->weights_zero = 0;
        const nk_stage stage = nk_make_stage(&s.call, &s.call.operands[NK_CONV2D_TABLE],
                                             &s.call.operands[NK_CONV2D_LUT],
                                             s.call.operands[NK_CONV2D_OUTPUT].channels,
                                             p->output_zero, p->clamp_low, p->clamp_high);
        taken += (uint32_t)nk_simd_active()->conv2d(&s.call, &stage);
    }
    CHECK_EQUAL(taken, 50);
    wide_layers_are_taken();
    release();
}

static void unknown_names_are_refused(void) {
    CHECK(neutronSetIsa("portable"));
    CHECK(!neutronSetIsa("avx1024"));
    CHECK_TEXT(neutronGetIsa(), "portable");
    CHECK(nk_simd_active() == NULL);
}

#if NK_HAS_X86
static const char *const sets[] = {"avx2", "avx512vnni"};
#else
static const char *const sets[] = {"neon", "dotprod", "i8mm"};
#endif

int main(int count, char **arguments) {
    const uint32_t cases = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : CASES;
    if (count > 2) state = strtoull(arguments[2], NULL, 0);
    if (count > 3) CHECK_TEXT(neutronGetIsa(), arguments[3]); /* what this processor is to choose */
    unknown_names_are_refused();
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; ++i) ordinary_layers_are_taken(sets[i]);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; ++i)
        loops_equal_definitions(sets[i], cases);
    return check_result();
}

#else
int main(void) {
    printf("this processor has no SIMD loops\n");
    return 0;
}
#endif
