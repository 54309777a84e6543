/* One call of a kernel, `runs` times: kernel height width inputs outputs window stride runs.
 * Weights, tables and inputs are as a compiler makes them; the values do not matter to the count,
 * but no weight is -128 and every channel shifts right, as in any quantized model. */
#include <stdio.h>
#include <stdlib.h>

#include "nk_simd.h"

#define KERNEL(name) int32_t nk_##name(uint32_t verb, nk_call *call)
KERNEL(conv2d);
KERNEL(depthwise_conv2d);
KERNEL(fully_connected);
KERNEL(add);
KERNEL(max_pool2d);
KERNEL(avg_pool2d);
KERNEL(lut);
KERNEL(conv2d16);
KERNEL(depthwise_conv2d16);
KERNEL(fully_connected16);
KERNEL(add16);
KERNEL(requantize);
KERNEL(lut16);

static uint32_t item = 1; /* bytes of an activation: 2 for kernels whose name ends in 16 */

static uint8_t *bytes(size_t count) {
    uint8_t *to = malloc(count);
    for (size_t i = 0; i < count; ++i) to[i] = (uint8_t)((i * 37u + 11u) % 127u);
    return to;
}

static nk_operand image(uint32_t height, uint32_t width, uint32_t channels) {
    nk_operand o = {.batch = 1, .height = height, .width = width, .channels = channels};
    o.dtype = item == 2 ? NEUTRON_DTYPE_INT16 : NEUTRON_DTYPE_INT8, o.present = 1;
    o.pixel = channels * item, o.pitch = width * o.pixel, o.ring = height;
    o.plane = o.available = height * o.pitch;
    o.data = bytes(o.available + 64);
    return o;
}

static nk_operand flat(size_t size) {
    nk_operand o = {.batch = 1, .height = 1, .width = 1, .channels = (uint32_t)size};
    o.dtype = NEUTRON_DTYPE_INT8, o.present = 1, o.ring = 1;
    o.pixel = o.pitch = o.plane = o.available = (uint32_t)size;
    o.data = bytes(size + 64);
    o.region = NEUTRON_REGION_WEIGHTS;
    return o;
}

/* bias, multiplier and shift per channel. */
static nk_operand table(uint32_t channels, int32_t shift) {
    const uint32_t padded = nk_blocks(channels, 8) * 8;
    nk_operand o = flat((size_t)12 * padded);
    int32_t *at = (int32_t *)(void *)o.data;
    for (uint32_t c = 0; c < padded; ++c)
        at[c] = 100, at[padded + c] = 1518500250, at[2 * padded + c] = shift;
    return o;
}

/* Low bias, multiplier, shift and high bias per channel. */
static nk_operand wide_table(uint32_t channels, int32_t multiplier, int32_t shift) {
    const uint32_t padded = nk_blocks(channels, 8) * 8;
    nk_operand o = flat((size_t)16 * padded);
    int32_t *at = (int32_t *)(void *)o.data;
    for (uint32_t c = 0; c < padded; ++c) {
        at[c] = 100, at[padded + c] = multiplier, at[2 * padded + c] = shift;
        at[3 * padded + c] = 0;
    }
    return o;
}

int main(int count, char **arguments) {
    if (count != 9) return 2;
    const char *kernel = arguments[1];
    if (strlen(kernel) > 2 && !strcmp(kernel + strlen(kernel) - 2, "16")) item = 2;
    int n[7];
    for (int i = 0; i < 7; ++i) n[i] = atoi(arguments[2 + i]);
    const uint32_t height = (uint32_t)n[0], width = (uint32_t)n[1], inputs = (uint32_t)n[2],
                   outputs = (uint32_t)n[3];
    const int32_t window = n[4], stride = n[5], pad = window / 2;
    const uint32_t oh = (height + (uint32_t)stride - 1) / (uint32_t)stride,
                   ow = (width + (uint32_t)stride - 1) / (uint32_t)stride;
    const uint32_t taps = (uint32_t)(window * window);
    int32_t params[64] = {0};
    nk_call call = {.params = params, .units = 8, .length = 8};
    call.rounding = NEUTRON_ROUNDING_DOUBLE, call.row1 = (int32_t)oh;
    nk_operand *o = call.operands;
    int32_t (*run)(uint32_t, nk_call *) = NULL;
    if (!strcmp(kernel, "conv2d")) {
        nk_conv2d_params *p = (nk_conv2d_params *)(void *)params;
        *p = (nk_conv2d_params){.kernel_h = window, .kernel_w = window, .stride_h = stride};
        p->stride_w = stride, p->dilation_h = p->dilation_w = p->groups = 1;
        p->pad_top = p->pad_left = pad, p->clamp_low = -128, p->clamp_high = 127;
        o[NK_CONV2D_INPUT] = image(height, width, inputs);
        o[NK_CONV2D_WEIGHTS] =
            flat((size_t)nk_blocks(outputs, 8) * taps * nk_blocks(inputs, 8) * 64);
        o[NK_CONV2D_TABLE] = table(outputs, -9);
        o[NK_CONV2D_OUTPUT] = image(oh, ow, outputs);
        run = nk_conv2d;
    } else if (!strcmp(kernel, "depthwise_conv2d")) {
        nk_depthwise_conv2d_params *p = (nk_depthwise_conv2d_params *)(void *)params;
        *p = (nk_depthwise_conv2d_params){.kernel_h = window, .kernel_w = window};
        p->stride_h = p->stride_w = stride, p->dilation_h = p->dilation_w = 1;
        p->depth_multiplier = 1, p->pad_top = p->pad_left = pad;
        p->clamp_low = -128, p->clamp_high = 127;
        o[NK_DEPTHWISE_CONV2D_INPUT] = image(height, width, inputs);
        o[NK_DEPTHWISE_CONV2D_WEIGHTS] = flat((size_t)nk_blocks(inputs, 8) * 8 * taps);
        o[NK_DEPTHWISE_CONV2D_TABLE] = table(inputs, -9);
        o[NK_DEPTHWISE_CONV2D_OUTPUT] = image(oh, ow, inputs);
        run = nk_depthwise_conv2d;
    } else if (!strcmp(kernel, "fully_connected")) {
        nk_fully_connected_params *p = (nk_fully_connected_params *)(void *)params;
        p->clamp_low = -128, p->clamp_high = 127;
        call.rounding = NEUTRON_ROUNDING_EXACT31; /* as the compiler makes it */
        o[NK_FULLY_CONNECTED_INPUT] = image(height, width, inputs);
        o[NK_FULLY_CONNECTED_WEIGHTS] =
            flat((size_t)nk_blocks(outputs, 8) * nk_blocks(inputs, 8) * 64);
        o[NK_FULLY_CONNECTED_TABLE] = table(outputs, 40);
        o[NK_FULLY_CONNECTED_OUTPUT] = image(height, width, outputs);
        run = nk_fully_connected;
    } else if (!strcmp(kernel, "add")) {
        nk_add_params *p = (nk_add_params *)(void *)params;
        p->multiplier1 = 1 << 30, p->multiplier2 = 1518500250, p->shift2 = -1;
        p->output_multiplier = 1518500250, p->output_shift = -18;
        p->clamp_low = -128, p->clamp_high = 127;
        for (int i = 0; i < 3; ++i) o[i] = image(height, width, inputs);
        run = nk_add;
    } else if (!strcmp(kernel, "conv2d16")) {
        nk_conv2d16_params *p = (nk_conv2d16_params *)(void *)params;
        *p = (nk_conv2d16_params){.kernel_h = window, .kernel_w = window, .stride_h = stride};
        p->stride_w = stride, p->dilation_h = p->dilation_w = p->groups = 1;
        p->pad_top = p->pad_left = pad, p->clamp_low = INT16_MIN, p->clamp_high = INT16_MAX;
        call.rounding = NEUTRON_ROUNDING_SINGLE;
        o[NK_CONV2D16_INPUT] = image(height, width, inputs);
        o[NK_CONV2D16_WEIGHTS] =
            flat((size_t)nk_blocks(outputs, 8) * taps * nk_blocks(inputs, 8) * 64);
        o[NK_CONV2D16_TABLE] = wide_table(outputs, 23170, 27);
        o[NK_CONV2D16_OUTPUT] = image(oh, ow, outputs);
        run = nk_conv2d16;
    } else if (!strcmp(kernel, "depthwise_conv2d16")) {
        nk_depthwise_conv2d16_params *p = (nk_depthwise_conv2d16_params *)(void *)params;
        *p = (nk_depthwise_conv2d16_params){.kernel_h = window, .kernel_w = window};
        p->stride_h = p->stride_w = stride, p->dilation_h = p->dilation_w = 1;
        p->depth_multiplier = 1, p->pad_top = p->pad_left = pad;
        p->clamp_low = INT16_MIN, p->clamp_high = INT16_MAX;
        call.rounding = NEUTRON_ROUNDING_SINGLE;
        o[NK_DEPTHWISE_CONV2D16_INPUT] = image(height, width, inputs);
        o[NK_DEPTHWISE_CONV2D16_WEIGHTS] = flat((size_t)nk_blocks(inputs, 8) * 8 * taps);
        o[NK_DEPTHWISE_CONV2D16_TABLE] = wide_table(inputs, 23170, 27);
        o[NK_DEPTHWISE_CONV2D16_OUTPUT] = image(oh, ow, inputs);
        run = nk_depthwise_conv2d16;
    } else if (!strcmp(kernel, "fully_connected16")) {
        nk_fully_connected16_params *p = (nk_fully_connected16_params *)(void *)params;
        p->clamp_low = INT16_MIN, p->clamp_high = INT16_MAX;
        call.rounding = NEUTRON_ROUNDING_EXACT53; /* as the compiler makes it */
        o[NK_FULLY_CONNECTED16_INPUT] = image(height, width, inputs);
        o[NK_FULLY_CONNECTED16_WEIGHTS] =
            flat((size_t)nk_blocks(outputs, 8) * nk_blocks(inputs, 8) * 64);
        o[NK_FULLY_CONNECTED16_TABLE] = wide_table(outputs, 1518500250, 65);
        o[NK_FULLY_CONNECTED16_OUTPUT] = image(height, width, outputs);
        run = nk_fully_connected16;
    } else if (!strcmp(kernel, "add16")) {
        nk_add16_params *p = (nk_add16_params *)(void *)params;
        p->multiplier1 = 1 << 30, p->multiplier2 = 1518500250, p->shift2 = -1;
        p->output_multiplier = 1518500250, p->output_shift = -14;
        p->clamp_low = INT16_MIN, p->clamp_high = INT16_MAX;
        for (int i = 0; i < 3; ++i) o[i] = image(height, width, inputs);
        run = nk_add16;
    } else if (!strcmp(kernel, "requantize16")) {
        nk_requantize_params *p = (nk_requantize_params *)(void *)params;
        p->multiplier = 1518500250, p->shift = -1;
        p->clamp_low = INT16_MIN, p->clamp_high = INT16_MAX;
        o[NK_REQUANTIZE_INPUT] = image(height, width, inputs);
        o[NK_REQUANTIZE_OUTPUT] = image(height, width, inputs);
        run = nk_requantize;
    } else if (!strcmp(kernel, "lut16")) {
        nk_lut16_params *p = (nk_lut16_params *)(void *)params;
        p->multiplier = 3;
        o[NK_LUT16_INPUT] = image(height, width, inputs);
        o[NK_LUT16_TABLE] = flat(512);
        o[NK_LUT16_OUTPUT] = image(height, width, inputs);
        run = nk_lut16;
    } else if (!strncmp(kernel, "max_pool2d", 10) || !strncmp(kernel, "avg_pool2d", 10)) {
        nk_max_pool2d_params *p = (nk_max_pool2d_params *)(void *)params; /* both have the same */
        p->kernel_h = p->kernel_w = window, p->stride_h = p->stride_w = stride;
        p->clamp_low = item == 2 ? INT16_MIN : -128, p->clamp_high = item == 2 ? INT16_MAX : 127;
        o[NK_MAX_POOL2D_INPUT] = image(height, width, inputs);
        o[NK_MAX_POOL2D_OUTPUT] = image(oh, ow, inputs);
        run = kernel[0] == 'm' ? nk_max_pool2d : nk_avg_pool2d;
    } else if (!strcmp(kernel, "lut")) {
        params[0] = 256;
        o[NK_LUT_INPUT] = image(height, width, inputs);
        o[NK_LUT_TABLE] = flat(256);
        o[NK_LUT_OUTPUT] = image(height, width, inputs);
        run = nk_lut;
    }
    if (!run) return 2;
    if (run(NK_CHECK, &call) != 0) {
        fprintf(stderr, "%s\n", call.why);
        return 1;
    }
    for (int i = 0; i < n[6]; ++i) run(NK_RUN, &call);
    return 0;
}
