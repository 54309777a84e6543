/* Random calls of the kernels for 16-bit activations; test_simd.c, which includes this, has the
 * random numbers, the operands and the comparison. */
#ifndef TEST_SCENES16_H
#define TEST_SCENES16_H

KERNEL(conv2d16);
KERNEL(depthwise_conv2d16);
KERNEL(fully_connected16);
KERNEL(add16);
KERNEL(lut16);

/* Low bias, multiplier, shift and high bias of `channels`, for outputs of 16 bits; half of the
 * tables are such as networks have. */
static nk_operand wide_table(uint32_t channels, uint8_t rounding) {
    const uint32_t padded = nk_blocks(channels, 8) * 8;
    nk_operand o = flat((size_t)16 * padded);
    const int usual = one_in(2);
    for (uint32_t c = 0; c < padded; ++c) {
        const int64_t any = (int64_t)((uint64_t)next() << 32 | next());
        const int64_t bias =
            one_in(usual ? 200 : 10) ? any >> between(0, 32) : between(-(1 << 24), 1 << 24);
        const int32_t low = (int32_t)(uint32_t)(uint64_t)bias, high = (int32_t)(bias >> 32);
        int32_t shift = one_in(8) ? between(-40, 6) : -between(0, 14);
        if (rounding == NEUTRON_ROUNDING_SINGLE)
            shift = one_in(8) ? between(0, 63) : between(28, 46);
        if (rounding == NEUTRON_ROUNDING_EXACT53)
            shift = (one_in(8) ? between(0, 130) : between(50, 72)) | between(0, (1 << 22) - 1)
                                                                          << 8;
        int32_t multiplier = any_multiplier();
        if (usual && rounding == NEUTRON_ROUNDING_SINGLE)
            shift = between(15, 32), multiplier = between(1 << 14, INT16_MAX);
        const int32_t words[4] = {low, multiplier, shift, high};
        for (uint32_t i = 0; i < 4; ++i)
            memcpy(o.data + 4 * ((size_t)i * padded + c), &words[i], 4);
    }
    return o;
}

static uint8_t any_wide_rounding(void) {
    return (uint8_t)ANY_OF(NEUTRON_ROUNDING_DOUBLE, NEUTRON_ROUNDING_SINGLE,
                           NEUTRON_ROUNDING_EXACT53);
}

static void any_wide_clamp(int32_t *narrow, int32_t *low, int32_t *high) {
    *narrow = one_in(2);
    *low = one_in(2) ? INT16_MIN : between(INT16_MIN, 0);
    *high = one_in(2) ? INT16_MAX : between(*low, INT16_MAX);
}

static void make_conv2d16(scene *s) {
    start(s, NK_CONV2D16_OUTPUT, nk_conv2d16);
    nk_conv2d16_params *p = (nk_conv2d16_params *)(void *)s->params;
    const int pointwise = one_in(3), big = one_in(4);
    p->kernel_h = pointwise ? 1 : between(1, 4), p->kernel_w = pointwise ? 1 : between(1, 4);
    p->stride_h = one_in(2) ? 1 : between(1, 3), p->stride_w = one_in(2) ? 1 : between(1, 3);
    p->dilation_h = one_in(5) ? between(1, 3) : 1, p->dilation_w = one_in(5) ? between(1, 3) : 1;
    p->groups = one_in(5) ? between(1, 3) : 1;
    const uint32_t inputs = (uint32_t)between(1, big ? 200 : 40);
    const uint32_t outputs = (uint32_t)(one_in(2) ? ANY_OF(1, 8, 16, 32) : between(1, 50));
    const uint32_t height = (uint32_t)between(1, 7), width = (uint32_t)between(1, 30);
    const uint32_t batch = one_in(5) ? 2 : 1, groups = (uint32_t)p->groups;
    const uint32_t oh = out_size(height, p->kernel_h, p->stride_h, p->dilation_h, &p->pad_top);
    const uint32_t ow = out_size(width, p->kernel_w, p->stride_w, p->dilation_w, &p->pad_left);
    any_rows(s, oh);
    nk_operand *o = s->call.operands;
    s->call.rounding = any_wide_rounding();
    o[NK_CONV2D16_INPUT] = image(NEUTRON_DTYPE_INT16, batch, height, width, inputs * groups, 1);
    o[NK_CONV2D16_WEIGHTS] =
        flat((size_t)groups * nk_blocks(outputs, 8) * (uint32_t)(p->kernel_h * p->kernel_w) *
             nk_blocks(inputs, 8) * 64);
    o[NK_CONV2D16_TABLE] = wide_table(outputs * groups, s->call.rounding);
    o[NK_CONV2D16_OUTPUT] = image(NEUTRON_DTYPE_INT16, batch, oh, ow, outputs * groups,
                                  (uint32_t)(s->call.row1 - s->call.row0));
    any_wide_clamp(&p->narrow, &p->clamp_low, &p->clamp_high);
}

static void make_depthwise_conv2d16(scene *s) {
    start(s, NK_DEPTHWISE_CONV2D16_OUTPUT, nk_depthwise_conv2d16);
    nk_depthwise_conv2d16_params *p = (nk_depthwise_conv2d16_params *)(void *)s->params;
    p->kernel_h = one_in(2) ? 3 : between(1, 7), p->kernel_w = one_in(2) ? 3 : between(1, 7);
    p->stride_h = between(1, 2), p->stride_w = one_in(8) ? 3 : between(1, 2);
    p->dilation_h = one_in(6) ? 2 : 1, p->dilation_w = one_in(6) ? 2 : 1;
    p->depth_multiplier = one_in(6) ? between(1, 4) : 1;
    const uint32_t channels = (uint32_t)(one_in(2) ? ANY_OF(8, 16, 24, 64) : between(1, 70));
    const uint32_t height = (uint32_t)between(1, 9), width = (uint32_t)between(1, 30);
    const uint32_t batch = one_in(5) ? 2 : 1, outputs = channels * (uint32_t)p->depth_multiplier;
    const uint32_t oh = out_size(height, p->kernel_h, p->stride_h, p->dilation_h, &p->pad_top);
    const uint32_t ow = out_size(width, p->kernel_w, p->stride_w, p->dilation_w, &p->pad_left);
    any_rows(s, oh);
    nk_operand *o = s->call.operands;
    s->call.rounding = any_wide_rounding();
    o[NK_DEPTHWISE_CONV2D16_INPUT] = image(NEUTRON_DTYPE_INT16, batch, height, width, channels, 1);
    o[NK_DEPTHWISE_CONV2D16_WEIGHTS] =
        flat((size_t)nk_blocks(outputs, 8) * 8 * (uint32_t)(p->kernel_h * p->kernel_w));
    o[NK_DEPTHWISE_CONV2D16_TABLE] = wide_table(outputs, s->call.rounding);
    o[NK_DEPTHWISE_CONV2D16_OUTPUT] =
        image(NEUTRON_DTYPE_INT16, batch, oh, ow, outputs, (uint32_t)(s->call.row1 - s->call.row0));
    any_wide_clamp(&p->narrow, &p->clamp_low, &p->clamp_high);
}

static void make_fully_connected16(scene *s) {
    start(s, NK_FULLY_CONNECTED16_OUTPUT, nk_fully_connected16);
    nk_fully_connected16_params *p = (nk_fully_connected16_params *)(void *)s->params;
    const uint32_t height = (uint32_t)(one_in(3) ? between(2, 5) : 1),
                   width = (uint32_t)(one_in(3) ? between(2, 9) : 1);
    const int largest = one_in(16); /* sums: every product is 2^22 */
    const uint32_t inputs =
                       (uint32_t)(largest || one_in(8) ? between(1000, 3000) : between(1, 200)),
                   outputs = (uint32_t)between(1, 90);
    any_rows(s, height);
    nk_operand *o = s->call.operands;
    s->call.rounding = any_wide_rounding();
    o[NK_FULLY_CONNECTED16_INPUT] = image(NEUTRON_DTYPE_INT16, 1, height, width, inputs, 1);
    o[NK_FULLY_CONNECTED16_WEIGHTS] =
        flat((size_t)nk_blocks(outputs, 8) * nk_blocks(inputs, 8) * 64);
    o[NK_FULLY_CONNECTED16_TABLE] = wide_table(outputs, s->call.rounding);
    o[NK_FULLY_CONNECTED16_OUTPUT] = image(NEUTRON_DTYPE_INT16, 1, height, width, outputs,
                                           (uint32_t)(s->call.row1 - s->call.row0));
    any_wide_clamp(&p->narrow, &p->clamp_low, &p->clamp_high);
    if (!largest) return;
    fill_extremes16(o[NK_FULLY_CONNECTED16_INPUT].data, o[NK_FULLY_CONNECTED16_INPUT].available, 1);
    memset(o[NK_FULLY_CONNECTED16_WEIGHTS].data, 0x80, o[NK_FULLY_CONNECTED16_WEIGHTS].available);
}

static void make_pool16(scene *s, int largest) {
    start(s, NK_MAX_POOL2D_OUTPUT, largest ? nk_max_pool2d : nk_avg_pool2d);
    nk_max_pool2d_params *p = (nk_max_pool2d_params *)(void *)s->params; /* both have the same */
    const int big = one_in(10); /* more taps than a float quotient is exact for */
    p->kernel_h = between(1, big ? 32 : 4), p->kernel_w = between(1, big ? 32 : 4);
    p->stride_h = between(1, 3), p->stride_w = between(1, 3);
    const uint32_t channels = (uint32_t)(big         ? between(8, 17)
                                         : one_in(2) ? ANY_OF(8, 16, 64)
                                                     : between(1, 70));
    const uint32_t height = (uint32_t)between(big ? 10 : 1, big ? 32 : 14),
                   width = (uint32_t)between(big ? 10 : 1, big ? 32 : 14);
    const uint32_t batch = one_in(5) ? 2 : 1;
    const uint32_t oh = out_size(height, p->kernel_h, p->stride_h, 1, &p->pad_top);
    const uint32_t ow = out_size(width, p->kernel_w, p->stride_w, 1, &p->pad_left);
    int32_t narrow;
    any_rows(s, oh);
    nk_operand *in = &s->call.operands[NK_MAX_POOL2D_INPUT];
    *in = image(NEUTRON_DTYPE_INT16, batch, height, width, channels, 1);
    for (size_t i = 0; i + 1 < in->available && big; i += 2) /* means whose fractions count */
        nk_store16(in->data + i, INT16_MAX - between(0, 3));
    s->call.operands[NK_MAX_POOL2D_LUT] = no_operand();
    s->call.operands[NK_MAX_POOL2D_OUTPUT] = image(NEUTRON_DTYPE_INT16, batch, oh, ow, channels,
                                                   (uint32_t)(s->call.row1 - s->call.row0));
    any_wide_clamp(&narrow, &p->clamp_low, &p->clamp_high);
    if (one_in(30)) p->clamp_high = 100000;
}

static void make_max_pool2d16(scene *s) { make_pool16(s, 1); }
static void make_avg_pool2d16(scene *s) { make_pool16(s, 0); }

static void make_pool_sum16(scene *s) {
    make_pool_sum(s);
    const nk_operand *in = &s->call.operands[NK_POOL_SUM_INPUT];
    s->call.operands[NK_POOL_SUM_INPUT] =
        image(NEUTRON_DTYPE_INT16, 1, in->height, in->width, in->channels, 1);
}

static void make_add16(scene *s) {
    start(s, NK_ADD16_OUTPUT, nk_add16);
    nk_add16_params *p = (nk_add16_params *)(void *)s->params;
    const uint32_t batch = one_in(5) ? 2 : 1, height = (uint32_t)between(1, 6),
                   width = (uint32_t)between(1, 20), channels = (uint32_t)between(1, 40);
    const uint8_t dtype = NEUTRON_DTYPE_INT16;
    int32_t narrow;
    any_rows(s, height);
    s->call.operands[NK_ADD16_INPUT1] =
        broadcast(dtype, batch, height, width, channels, !one_in(4));
    s->call.operands[NK_ADD16_INPUT2] =
        broadcast(dtype, batch, height, width, channels, !one_in(4));
    s->call.operands[NK_ADD16_OUTPUT] =
        image(dtype, batch, height, width, channels, (uint32_t)(s->call.row1 - s->call.row0));
    p->subtract = one_in(2), p->shifts_only = one_in(4);
    p->multiplier1 = any_multiplier(), p->multiplier2 = any_multiplier();
    p->output_multiplier = any_multiplier();
    p->shift1 = -between(0, one_in(4) ? 31 : 6), p->shift2 = -between(0, one_in(4) ? 31 : 6);
    p->output_shift = -(one_in(4) ? between(0, 31) : between(12, 16));
    if (one_in(2)) p->multiplier1 = 1 << 30, p->shift1 = 0;
    if (one_in(2)) p->multiplier2 = 1 << 30, p->shift2 = 0;
    any_wide_clamp(&narrow, &p->clamp_low, &p->clamp_high);
}

/* Between 16 bits and 16 or 8, in both directions. */
static void make_requantize16(scene *s) {
    start(s, NK_REQUANTIZE_OUTPUT, nk_requantize);
    nk_requantize_params *p = (nk_requantize_params *)(void *)s->params;
    const uint32_t height = (uint32_t)between(1, 6), width = (uint32_t)between(1, 20),
                   channels = (uint32_t)between(1, 40);
    const uint8_t from = one_in(3) ? any_dtype() : NEUTRON_DTYPE_INT16,
                  to = from != NEUTRON_DTYPE_INT16 || one_in(2) ? NEUTRON_DTYPE_INT16 : any_dtype();
    int32_t narrow;
    any_rows(s, height);
    s->call.operands[NK_REQUANTIZE_INPUT] = image(from, 1, height, width, channels, 1);
    s->call.operands[NK_REQUANTIZE_OUTPUT] =
        image(to, 1, height, width, channels, (uint32_t)(s->call.row1 - s->call.row0));
    p->input_zero = from == NEUTRON_DTYPE_INT16 ? 0 : between(-128, 255);
    p->multiplier = one_in(4) ? 1 << 30 : any_multiplier();
    p->shift = one_in(4) ? 1 : between(-31, one_in(4) ? 30 : 4);
    if (to == NEUTRON_DTYPE_INT16) any_wide_clamp(&narrow, &p->clamp_low, &p->clamp_high);
    else any_clamp(to, &p->output_zero, &p->clamp_low, &p->clamp_high);
}

static void make_lut16(scene *s) {
    start(s, NK_LUT16_OUTPUT, nk_lut16);
    nk_lut16_params *p = (nk_lut16_params *)(void *)s->params;
    const uint32_t height = (uint32_t)between(1, 6), width = (uint32_t)between(1, 20),
                   channels = (uint32_t)between(1, 40);
    any_rows(s, height);
    s->call.operands[NK_LUT16_INPUT] = image(NEUTRON_DTYPE_INT16, 1, height, width, channels, 1);
    s->call.operands[NK_LUT16_TABLE] = flat(512);
    s->call.operands[NK_LUT16_OUTPUT] = image(NEUTRON_DTYPE_INT16, 1, height, width, channels,
                                              (uint32_t)(s->call.row1 - s->call.row0));
    p->tangent = one_in(2);
    p->multiplier = one_in(2) ? ANY_OF(0, 1, 3, 6, UINT16_MAX) : between(1 << 14, UINT16_MAX);
    p->shift = one_in(3) ? between(0, 31) : between(10, 18);
    if (one_in(3)) p->shift = 0;
}

static nk_wide_stage any_stage(const scene *s, uint32_t table) {
    return nk_make_wide_stage(&s->call, &s->call.operands[table],
                              s->call.operands[s->output].channels, 0, INT16_MIN, INT16_MAX);
}

/* Ordinary layers must be taken by the set in use. */
static void wide_layers_are_taken(void) {
    const nk_simd *loops = nk_simd_active();
    for (uint32_t i = 0; i < 50; ++i) {
        scene s;
        make_conv2d16(&s);
        nk_wide_stage stage = any_stage(&s, NK_CONV2D16_TABLE);
        CHECK(loops->conv2d16(&s.call, &stage));
        make_fully_connected16(&s);
        stage = any_stage(&s, NK_FULLY_CONNECTED16_TABLE);
        CHECK(loops->fully_connected16(&s.call, &stage));
        do make_depthwise_conv2d16(&s);
        while (((nk_depthwise_conv2d16_params *)(void *)s.params)->depth_multiplier > 1);
        stage = any_stage(&s, NK_DEPTHWISE_CONV2D16_TABLE);
        CHECK(loops->depthwise_conv2d16(&s.call, &stage));
        do make_max_pool2d16(&s);
        while (s.call.operands[NK_MAX_POOL2D_OUTPUT].channels < 8);
        const nk_stage clamp = {.low = INT16_MIN, .high = INT16_MAX};
        CHECK(loops->max_pool2d16(&s.call, &clamp) && loops->avg_pool2d16(&s.call, &clamp));
        make_add16(&s);
        CHECK(loops->add16(&s.call));
        make_requantize16(&s);
        CHECK(loops->requantize16(&s.call));
    }
}

#endif
