/* Shared by the kernels of the array: windows over images, packed dot products, and the stage that
 * turns an accumulator into an output byte.
 */
#ifndef NK_WINDOW_H
#define NK_WINDOW_H

#include "nk_elementwise.h"
#include "dsp/dsp.h"

/* M and N of any target's packing; bounds the accumulators and inputs a kernel keeps on its stack.
 */
#define NK_MAX_UNITS 64
#define NK_MAX_LENGTH 64

/* Largest kernel, stride and dilation, and largest position a window may reach: products stay
 * inside int32. */
#define NK_WINDOW_MAX 32767
#define NK_REACH_MAX (1 << 30)

typedef struct {
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
} nk_window;

/* Parameters of these kernels begin with their window. */
#define NK_BEGINS_WITH_WINDOW(params) \
    _Static_assert(offsetof(params, pad_left) == offsetof(nk_window, pad_left), \
                   "the window comes first")
NK_BEGINS_WITH_WINDOW(nk_conv2d_params);
NK_BEGINS_WITH_WINDOW(nk_depthwise_conv2d_params);
NK_BEGINS_WITH_WINDOW(nk_conv2d16_params);
NK_BEGINS_WITH_WINDOW(nk_depthwise_conv2d16_params);

static inline const nk_window *nk_window_first(const nk_call *call) {
    return (const nk_window *)(const void *)call->params;
}

/* Parameters of these, as of max_pool2d, begin with a window without dilation. */
#define NK_BEGINS_WITH_UNDILATED(params) \
    _Static_assert(offsetof(params, pad_left) == offsetof(nk_max_pool2d_params, pad_left), \
                   "the window comes first, without dilation")
NK_BEGINS_WITH_UNDILATED(nk_avg_pool2d_params);
NK_BEGINS_WITH_UNDILATED(nk_transpose_conv2d_params);
NK_BEGINS_WITH_UNDILATED(nk_transpose_conv2d16_params);

static inline nk_window nk_undilated(const nk_call *call) {
    const nk_max_pool2d_params *p = (const nk_max_pool2d_params *)(const void *)call->params;
    return (nk_window){p->kernel_h, p->kernel_w, p->stride_h, p->stride_w,
                       1,           1,           p->pad_top,  p->pad_left};
}

/* The window under which output row y is computed from input rows y * stride_h - pad_top and on; 0
 * for kernels without one. */
static inline int nk_window_of(const nk_call *call, nk_window *w) {
    switch (call->kernel) {
    case NEUTRON_KERNEL_CONV2D:
    case NEUTRON_KERNEL_DEPTHWISE_CONV2D:
    case NEUTRON_KERNEL_CONV2D16:
    case NEUTRON_KERNEL_DEPTHWISE_CONV2D16: *w = *nk_window_first(call); return 1;
    case NEUTRON_KERNEL_MAX_POOL2D:
    case NEUTRON_KERNEL_AVG_POOL2D: *w = nk_undilated(call); return 1;
    default: return 0;
    }
}

static inline int nk_axis_ok(int32_t kernel, int32_t stride, int32_t dilation, int32_t pad,
                             uint32_t in, uint32_t out) {
    if (kernel < 1 || kernel > NK_WINDOW_MAX || stride < 1 || stride > NK_WINDOW_MAX) return 0;
    if (dilation < 1 || dilation > NK_WINDOW_MAX || pad < 0 || pad > NK_REACH_MAX) return 0;
    return (uint64_t)out * (uint32_t)stride <= NK_REACH_MAX &&
           (uint64_t)kernel * (uint32_t)dilation <= NK_REACH_MAX && in <= NK_REACH_MAX;
}

/* 1 when every position the window can ask for is an int32. */
static inline int nk_window_ok(const nk_window *w, const nk_operand *in, const nk_operand *out) {
    return nk_axis_ok(w->kernel_h, w->stride_h, w->dilation_h, w->pad_top, in->height,
                      out->height) &&
           nk_axis_ok(w->kernel_w, w->stride_w, w->dilation_w, w->pad_left, in->width, out->width);
}

/* A product of sizes that stops at the largest number instead of wrapping. */
static inline uint64_t nk_times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint32_t nk_blocks(uint32_t count, uint32_t size) {
    return count / size + (count % size != 0);
}

static inline int nk_packing_ok(const nk_call *call) {
    return call->units >= 1 && call->units <= NK_MAX_UNITS && call->length >= 1 &&
           call->length <= NK_MAX_LENGTH;
}

/* Bytes of dense weights: [channels/M][taps][inputs/N][M][N]. */
static inline uint64_t nk_dense_bytes(const nk_call *call, uint32_t channels, uint64_t taps,
                                      uint32_t inputs) {
    const uint64_t block = (uint64_t)call->units * call->length;
    return nk_times(nk_times(nk_blocks(channels, call->units), taps),
                    nk_times(nk_blocks(inputs, call->length), block));
}

/* How an accumulator becomes a byte: requantize, zero point, clamp, and the table of a fused
 * function. The table is indexed by the byte that would have been stored. */
typedef struct {
    const uint8_t *table; /* bias[c], multiplier[c], shift[c]: INT32 each */
    const uint8_t *lut;   /* NULL: none */
    size_t column;        /* bytes of one of the three */
    int32_t zero, low, high;
    uint8_t rounding;
} nk_stage;

static inline uint8_t nk_finish(const nk_stage *stage, int32_t value) {
    const uint8_t byte =
        (uint8_t)nk_clamp(nk_wrap_add(value, stage->zero), stage->low, stage->high);
    return stage->lut ? stage->lut[byte] : byte;
}

/* The same for an output of either width; elements of 16 bits have no table. */
static inline int32_t nk_finish_as(const nk_stage *stage, const nk_operand *out, int32_t value) {
    if (!nk_is_wide(out)) return nk_finish(stage, value);
    return nk_clamp(nk_wrap_add(value, stage->zero), stage->low, stage->high);
}

static inline int32_t nk_stage_bias(const nk_stage *stage, size_t channel) {
    return nk_load32(stage->table + 4 * channel);
}

static inline uint8_t nk_stage_output(const nk_stage *stage, size_t channel, int32_t acc) {
    const uint8_t *at = stage->table + 4 * channel + stage->column;
    const int32_t shift = nk_safe_shift(stage->rounding, nk_load32(at + stage->column));
    return nk_finish(stage, nk_rescale(stage->rounding, acc, nk_load32(at), shift));
}

static inline nk_stage nk_make_stage(const nk_call *call, const nk_operand *table,
                                     const nk_operand *lut, uint32_t channels, int32_t zero,
                                     int32_t low, int32_t high) {
    nk_stage stage = {.table = table ? table->data : NULL,
                      .lut = lut->present ? lut->data : NULL,
                      .column = (size_t)4 * nk_blocks(channels, call->units) * call->units,
                      .zero = zero,
                      .low = low,
                      .high = high,
                      .rounding = call->rounding};
    return stage;
}

static inline int nk_lut_ok(const nk_operand *lut) {
    return !lut->present || nk_inside_flat(lut, 256);
}

/* Check of what the array's kernels have in common: byte tensors of equal batch, a table, a
 * rounding mode. */
static inline int32_t nk_check_array(nk_call *call, const nk_operand *in, const nk_operand *table,
                                     const nk_operand *lut, const nk_operand *out) {
    if (!nk_is_byte(in) || !nk_is_byte(out))
        return nk_refuse(call, "input and output must be of 8 bits");
    if (in->batch != out->batch) return nk_refuse(call, "input and output differ in batch");
    if (!nk_packing_ok(call)) return nk_refuse(call, "the packing has more than 64 units or lanes");
    if (call->rounding < NEUTRON_ROUNDING_DOUBLE || call->rounding > NEUTRON_ROUNDING_EXACT53)
        return nk_refuse(call, "the rounding mode does not requantize");
    const uint64_t channels = (uint64_t)nk_blocks(out->channels, call->units) * call->units;
    if (!nk_inside(in) || !nk_inside(out) || !nk_inside_flat(table, 12 * channels) ||
        !nk_lut_ok(lut))
        return nk_refuse(call, "an operand leaves its region");
    return 0;
}

/* Check of a dense convolution: its window, its groups, and weights for both. */
static inline int32_t nk_check_dense(nk_call *call, int32_t groups, const nk_operand *in,
                                     const nk_operand *weights, const nk_operand *out) {
    const nk_window *w = nk_window_first(call);
    const uint32_t parts = (uint32_t)groups;
    if (!nk_window_ok(w, in, out)) return nk_refuse(call, "the window is out of range");
    if (groups < 1 || in->channels % parts || out->channels % parts)
        return nk_refuse(call, "the groups do not divide the channels");
    const uint64_t taps = (uint64_t)w->kernel_h * (uint32_t)w->kernel_w;
    const uint64_t bytes = nk_dense_bytes(call, out->channels / parts, taps, in->channels / parts);
    if (!nk_inside_flat(weights, nk_times(bytes, parts)))
        return nk_refuse(call, "the weights leave their region");
    return 0;
}

/* Check of a depth-wise convolution: its window, its channels, and weights for both. */
static inline int32_t nk_check_depthwise(nk_call *call, int32_t depth_multiplier,
                                         const nk_operand *in, const nk_operand *weights,
                                         const nk_operand *out) {
    const nk_window *w = nk_window_first(call);
    if (!nk_window_ok(w, in, out)) return nk_refuse(call, "the window is out of range");
    if (depth_multiplier < 1 || nk_times(in->channels, (uint32_t)depth_multiplier) != out->channels)
        return nk_refuse(call, "output channels are not input channels times the depth multiplier");
    const uint64_t taps = (uint64_t)w->kernel_h * (uint32_t)w->kernel_w;
    const uint64_t channels = (uint64_t)nk_blocks(out->channels, call->units) * call->units;
    if (!nk_inside_flat(weights, nk_times(taps, channels)))
        return nk_refuse(call, "the weights leave their region");
    return 0;
}

/* Check of a transposed convolution: its window, which runs over the output, and its weights. */
static inline int32_t nk_check_transposed(nk_call *call, const nk_operand *in,
                                          const nk_operand *weights, const nk_operand *out) {
    const nk_window w = nk_undilated(call);
    if (!nk_window_ok(&w, out, in)) return nk_refuse(call, "the window is out of range");
    const uint64_t taps = (uint64_t)w.kernel_h * (uint32_t)w.kernel_w;
    if (!nk_inside_flat(weights, nk_dense_bytes(call, out->channels, taps, in->channels)))
        return nk_refuse(call, "the weights leave their region");
    return 0;
}

/* The input position of a transposed convolution behind output position `at` and filter position
 * `k`; -1 when there is none. */
static inline int32_t nk_source_of(int32_t at, int32_t pad, int32_t k, int32_t stride,
                                   uint32_t size) {
    const int32_t shifted = at + pad - k;
    if (shifted < 0 || shifted % stride != 0 || (uint32_t)(shifted / stride) >= size) return -1;
    return shifted / stride;
}

/* Positions [first, last) of a window that lie inside the image; empty when first >= last. */
typedef struct {
    int32_t first, last;
} nk_span;

static inline nk_span nk_span_of(int32_t at, int32_t stride, int32_t pad, int32_t kernel,
                                 uint32_t size) {
    const int32_t start = at * stride - pad;
    return (nk_span){nk_max(start, 0), nk_min(start + kernel, (int32_t)size)};
}

/* Load up to N inputs as values; lanes beyond `count` become 0, and a missing pixel is all
 * `absent`. */
static inline int32_t nk_load_lanes(const uint8_t *pixel, int32_t flip, int32_t absent,
                                    uint32_t count, uint32_t length, int32_t *lanes) {
    int32_t sum = 0;
    for (uint32_t n = 0; n < count; ++n) {
        lanes[n] = pixel ? nk_value(pixel[n], flip) : absent;
        sum += lanes[n];
    }
    for (uint32_t n = count; n < length; ++n) lanes[n] = 0;
    return sum;
}

/* acc[m] += sum of input * weight over one tap, weights [inputs/N][M][N]; returns the sum of the
 * inputs, which a weight zero point multiplies. Unsigned, because the reference's accumulators
 * wrap. */
static inline uint32_t nk_dot_portable(const nk_call *call, const uint8_t *pixel, int32_t flip,
                                       int32_t absent, uint32_t inputs, const int8_t *weights,
                                       uint32_t *acc) {
    const uint32_t units = call->units, length = call->length;
    uint32_t sum = 0;
    for (uint32_t at = 0; at < inputs; at += length) {
        int32_t lanes[NK_MAX_LENGTH];
        const uint32_t count = inputs - at < length ? inputs - at : length;
        sum +=
            (uint32_t)nk_load_lanes(pixel ? pixel + at : NULL, flip, absent, count, length, lanes);
        for (uint32_t m = 0; m < units; ++m, weights += length) {
            int32_t dot = 0;
            for (uint32_t n = 0; n < length; ++n) dot += lanes[n] * weights[n];
            acc[m] += (uint32_t)dot;
        }
    }
    return sum;
}

/* acc[m] += value of input m * (weight m - zero) over one tap of `count` channels that each have
 * their own window. */
static inline void nk_lanes_portable(const uint8_t *pixel, int32_t flip, int32_t absent,
                                     uint32_t count, const int8_t *weights, int32_t weights_zero,
                                     uint32_t *acc) {
    for (uint32_t m = 0; m < count; ++m) {
        const int32_t value = pixel ? nk_value(pixel[m], flip) : absent;
        acc[m] += (uint32_t)(value * (weights[m] - weights_zero));
    }
}

#if NK_HAS_DSP
/* dsp/dot_dsp.c and dsp/lanes_dsp.c */
uint32_t nk_dot(const nk_call *call, const uint8_t *pixel, int32_t flip, int32_t absent,
                uint32_t inputs, const int8_t *weights, uint32_t *acc);
void nk_lanes(const uint8_t *pixel, int32_t flip, int32_t absent, uint32_t count,
              const int8_t *weights, int32_t weights_zero, uint32_t *acc);
#else
#define nk_dot nk_dot_portable
#define nk_lanes nk_lanes_portable
#endif

#endif
