/* reduce: mean, sum, maximum or minimum over any of the four dimensions (docs/numerics.md). The
 * output has size 1 along the reduced ones. Output-major, so that accumulators are a few registers
 * and no workspace is needed. */
#include "nk_elementwise.h"

enum { BATCH = 1, HEIGHT = 2, WIDTH = 4, CHANNELS = 8 };
enum { SUM = 0, MAXIMUM = 1, MINIMUM = 2 };
enum { STEPS = 255 };
enum { PATIENCE = 1024 }; /* pixels between two looks at the clock */
enum {
    BLOCK = 32
}; /* accumulators at a time: 128 bytes of stack, enough to amortize the loops around them */

/* The part of the input that makes one output pixel. */
typedef struct {
    uint32_t image0, image1, x0, x1;
    int32_t y0, y1;
} box;

static void combine(int32_t mode, int32_t *into, int32_t v) {
    if (mode == SUM) *into = nk_wrap_add(*into, v);
    else if (mode == MAXIMUM) *into = nk_max(*into, v);
    else *into = nk_min(*into, v);
}

/* Channels [first, first + count) of the box, each on its own. */
static void gather_block(const nk_call *call, const nk_operand *in, const box *b, int32_t mode,
                         uint32_t first, uint32_t count, int32_t *acc) {
    const size_t item = nk_item(in);
    for (uint32_t image = b->image0; image < b->image1; ++image) {
        for (int32_t y = b->y0; y < b->y1; ++y) {
            const uint8_t *from = nk_row(in, image, y) + (size_t)b->x0 * in->pixel + first * item;
            for (uint32_t x = b->x0; x < b->x1; ++x, from += in->pixel) {
                if (x % PATIENCE == 0 && nk_stopped(call)) return;
                if (mode == SUM)
                    for (uint32_t c = 0; c < count; ++c)
                        acc[c] = nk_wrap_add(acc[c], nk_read(in, from + c * item));
                else
                    for (uint32_t c = 0; c < count; ++c)
                        combine(mode, &acc[c], nk_read(in, from + c * item));
            }
        }
    }
}

/* All channels of the box together. */
static int32_t gather_all(const nk_call *call, const nk_operand *in, const box *b, int32_t mode,
                          int32_t start) {
    const size_t item = nk_item(in);
    int32_t acc = start;
    for (uint32_t image = b->image0; image < b->image1; ++image) {
        for (int32_t y = b->y0; y < b->y1; ++y) {
            const uint8_t *from = nk_row(in, image, y) + (size_t)b->x0 * in->pixel;
            for (uint32_t x = b->x0; x < b->x1; ++x, from += in->pixel) {
                if (x % PATIENCE == 0 && nk_stopped(call)) return acc;
                for (uint32_t c = 0; c < in->channels; ++c)
                    combine(mode, &acc, nk_read(in, from + c * item));
            }
        }
    }
    return acc;
}

/* The result by thresholds: steps[k] is the least sum that gives more than the smallest output plus
 * k. */
static int32_t by_steps(const nk_operand *steps, int32_t low, int32_t acc) {
    int32_t reached = 0;
    for (int32_t half = 128; half > 0; half /= 2)
        if (acc >= nk_load32(steps->data + 4 * (size_t)(reached + half - 1))) reached += half;
    return low + reached;
}

static int32_t finish(const nk_reduce_params *p, const nk_operand *steps, int32_t acc) {
    if (p->mode != SUM) return acc;
    if (steps->present) return by_steps(steps, p->clamp_low, acc);
    const int32_t v = nk_mbqm(nk_wrap_add(acc, p->offset), p->multiplier, p->shift);
    return nk_clamp(nk_wrap_add(v, p->output_zero), p->clamp_low, p->clamp_high);
}

static void reduce_pixel(const nk_call *call, const box *b, uint8_t *to) {
    const nk_reduce_params *p = (const nk_reduce_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_REDUCE_INPUT],
                     *out = &call->operands[NK_REDUCE_OUTPUT];
    const nk_operand *steps = &call->operands[NK_REDUCE_STEPS];
    const int32_t start = p->mode == SUM ? 0 : p->mode == MAXIMUM ? INT32_MIN : INT32_MAX;
    if (p->axes & CHANNELS) {
        nk_write(out, to, finish(p, steps, gather_all(call, in, b, p->mode, start)));
        return;
    }
    for (uint32_t first = 0; first < in->channels; first += BLOCK) {
        const uint32_t count = in->channels - first < BLOCK ? in->channels - first : BLOCK;
        int32_t acc[BLOCK];
        for (uint32_t c = 0; c < count; ++c) acc[c] = start;
        gather_block(call, in, b, p->mode, first, count, acc);
        for (uint32_t c = 0; c < count; ++c)
            nk_write(out, to + (first + c) * (size_t)nk_item(out), finish(p, steps, acc[c]));
    }
}

static int kept(int32_t axes, int32_t bit, uint32_t in, uint32_t out) {
    return out == (axes & bit ? 1 : in);
}

int32_t nk_reduce(uint32_t verb, nk_call *call) {
    const nk_reduce_params *p = (const nk_reduce_params *)(const void *)call->params;
    const nk_operand *in = &call->operands[NK_REDUCE_INPUT],
                     *out = &call->operands[NK_REDUCE_OUTPUT];
    const nk_operand *steps = &call->operands[NK_REDUCE_STEPS];
    const int32_t axes = p->axes;
    if (verb == NK_CHECK) {
        if (!nk_same_type(in, out))
            return nk_refuse(call, "input and output must be of one type of 8 or 16 bits");
        if (axes < 0 || axes > 15 || p->mode < SUM || p->mode > MINIMUM)
            return nk_refuse(call, "axes or mode are out of range");
        if (!kept(axes, BATCH, in->batch, out->batch) ||
            !kept(axes, HEIGHT, in->height, out->height) ||
            !kept(axes, WIDTH, in->width, out->width) ||
            !kept(axes, CHANNELS, in->channels, out->channels))
            return nk_refuse(call, "the output's shape does not follow from the axes");
        if (!nk_scale_ok(p->multiplier, p->shift, 30))
            return nk_refuse(call, "multiplier or shift is out of range");
        if (p->mode == SUM && !nk_output_of(out, p->output_zero, p->clamp_low, p->clamp_high))
            return nk_refuse(call, "output zero point or clamp is out of range");
        if (steps->present && !nk_inside_flat(steps, 4 * STEPS))
            return nk_refuse(call, "the steps leave their region");
        if (!nk_inside(in) || !nk_inside(out))
            return nk_refuse(call, "an operand leaves its region");
        return 0;
    }
    for (uint32_t image = 0; image < out->batch; ++image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                if (nk_stopped(call)) return 0;
                const box b = {
                    axes & BATCH ? 0 : image, axes & BATCH ? in->batch : image + 1,
                    axes & WIDTH ? 0 : x,     axes & WIDTH ? in->width : x + 1,
                    axes & HEIGHT ? 0 : y,    axes & HEIGHT ? (int32_t)in->height : y + 1,
                };
                reduce_pixel(call, &b, to);
            }
        }
    }
    return 0;
}
