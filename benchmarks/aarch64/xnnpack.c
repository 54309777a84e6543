/* The same layers in XNNPACK's operators: kernel height width inputs outputs window stride runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xnnpack.h>

static int8_t *bytes(size_t count) {
    int8_t *to = malloc(count);
    for (size_t i = 0; i < count; ++i) to[i] = (int8_t)((i * 37u + 11u) % 127u);
    return to;
}

int main(int count, char **arguments) {
    if (count != 9) return 2;
    const char *kernel = arguments[1];
    size_t n[7];
    for (int i = 0; i < 7; ++i) n[i] = (size_t)atoi(arguments[2 + i]);
    const size_t height = n[0], width = n[1], inputs = n[2], outputs = n[3], stride = n[5];
    const uint32_t window = (uint32_t)n[4], pad = window / 2, step = (uint32_t)stride;
    const size_t channels = inputs > outputs ? inputs : outputs, pixels = height * width;
    int8_t *in = bytes(pixels * channels + 64), *other = bytes(pixels * channels + 64),
           *out = bytes(pixels * channels + 64),
           *weights = bytes(inputs * outputs * window * window);
    int32_t *bias = calloc(channels, sizeof *bias);
    float *scales = malloc(channels * sizeof *scales);
    for (size_t c = 0; c < channels; ++c) scales[c] = 0.002f;
    xnn_operator_t op = NULL;
    enum xnn_status status = xnn_initialize(NULL);
    if (status) return 3;
    if (!strcmp(kernel, "conv2d")) {
        status = xnn_create_convolution2d_nhwc_qc8(
            pad, pad, pad, pad, window, window, step, step, 1, 1, 1, inputs, outputs, inputs,
            outputs, 0, 1.0f, scales, weights, bias, 0, 1.0f, -128, 127, 0, &op);
        if (!status) status = xnn_setup_convolution2d_nhwc_qc8(op, 1, height, width, in, out, NULL);
    } else if (!strcmp(kernel, "depthwise_conv2d")) {
        status = xnn_create_convolution2d_nhwc_qc8(pad, pad, pad, pad, window, window, step, step,
                                                   1, 1, (uint32_t)inputs, 1, 1, inputs, inputs, 0,
                                                   1.0f, scales, weights, bias, 0, 1.0f, -128, 127,
                                                   XNN_FLAG_DEPTHWISE_CONVOLUTION, &op);
        if (!status) status = xnn_setup_convolution2d_nhwc_qc8(op, 1, height, width, in, out, NULL);
    } else if (!strcmp(kernel, "fully_connected")) {
        status =
            xnn_create_fully_connected_nc_qs8(inputs, outputs, inputs, outputs, 0, 1.0f, 0.002f,
                                              weights, bias, 0, 1.0f, -128, 127, 0, &op);
        if (!status) status = xnn_setup_fully_connected_nc_qs8(op, pixels, in, out, NULL);
    } else if (!strcmp(kernel, "add")) {
        const size_t shape[2] = {pixels, inputs};
        status = xnn_create_add_nd_qs8(0, 1.0f, 0, 0.7f, 0, 1.2f, -128, 127, 0, &op);
        if (!status) status = xnn_setup_add_nd_qs8(op, 2, shape, 2, shape, in, other, out, NULL);
    } else if (!strcmp(kernel, "max_pool2d")) {
        status = xnn_create_max_pooling2d_nhwc_s8(0, 0, 0, 0, window, window, step, step, 1, 1,
                                                  inputs, inputs, inputs, -128, 127, 0, &op);
        if (!status) status = xnn_setup_max_pooling2d_nhwc_s8(op, 1, height, width, in, out, NULL);
    } else {
        return 4;
    }
    if (status) return 5;
    for (size_t i = 0; i < n[6]; ++i)
        if (xnn_run_operator(op, NULL)) return 6;
    return 0;
}
