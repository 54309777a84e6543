/* pad: the input inside a frame of one value, in any of the four dimensions. */
#include "nk_elementwise.h"

/* `count` elements set to the value. */
static void set(const nk_operand *out, uint8_t *to, size_t count, int value) {
    if (!nk_is_wide(out)) memset(to, value, count);
    else
        for (size_t i = 0; i < count; ++i) nk_store16(to + 2 * i, value);
}

/* Pixels [first, first + count) of an output row, all channels, set to the value. */
static void fill(const nk_operand *out, uint8_t *row, uint32_t first, uint32_t count, int value) {
    if (out->pixel == out->channels * nk_item(out)) {
        set(out, row + (size_t)first * out->pixel, (size_t)count * out->channels, value);
        return;
    }
    for (uint32_t x = first; x < first + count; ++x)
        set(out, row + (size_t)x * out->pixel, out->channels, value);
}

static void pad_row(const nk_pad_params *p, const nk_operand *in, const nk_operand *out,
                    const uint8_t *from, uint8_t *row) {
    const uint32_t left = (uint32_t)p->before_width, before = (uint32_t)p->before_channels;
    const uint32_t after = out->channels - before - in->channels;
    const size_t item = nk_item(out), kept = in->channels * item;
    fill(out, row, 0, left, p->value);
    fill(out, row, left + in->width, out->width - left - in->width, p->value);
    uint8_t *to = row + (size_t)left * out->pixel;
    if (out->channels == in->channels && out->pixel == in->pixel && in->pixel == kept) {
        memmove(to, from, (size_t)in->width * in->pixel);
        return;
    }
    for (uint32_t x = 0; x < in->width; ++x, to += out->pixel, from += in->pixel) {
        set(out, to, before, p->value);
        memmove(to + before * item, from, kept);
        set(out, to + before * item + kept, after, p->value);
    }
}

static int fits(int32_t before, uint32_t inner, uint32_t outer) {
    return before >= 0 && (uint64_t)before + inner <= outer;
}

int32_t nk_pad(uint32_t verb, nk_call *call) {
    const nk_pad_params *p = (const nk_pad_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_PAD_INPUT], *out = &call->operands[NK_PAD_OUTPUT];
    if (verb == NK_CHECK) {
        if (!nk_same_type(in, out))
            return nk_refuse(call, "input and output must be of one type of 8 or 16 bits");
        if (!fits(p->before_batch, in->batch, out->batch) ||
            !fits(p->before_height, in->height, out->height) ||
            !fits(p->before_width, in->width, out->width) ||
            !fits(p->before_channels, in->channels, out->channels))
            return nk_refuse(call, "the input does not fit into the output");
        if (!nk_inside(in) || !nk_inside(out))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *row = nk_row(out, image, y);
            const uint32_t source = image - (uint32_t)p->before_batch,
                           line = (uint32_t)(y - p->before_height);
            if (source >= in->batch || line >= in->height) fill(out, row, 0, out->width, p->value);
            else pad_row(p, in, out, nk_row(in, source, (int32_t)line), row);
        }
    }
    return 0;
}
