/* batch_matmul: a matrix is one row of pixels (its rows) times channels (its columns); images and
 * rows are the batch. Matrices of 16 bits are summed in 64. */
#include "nk_window.h"

typedef struct {
    const uint8_t *data;
    size_t outer_step, depth_step; /* bytes from one row (left) or column (right) to the next, and
                                      along the depth */
    int32_t flip, zero;
} side;

/* Which image of an input belongs to output image `image`, when the input has `inner` of the
 * output's `of` inner ones. */
static uint32_t image_of(const nk_operand *o, uint32_t image, uint32_t inner, uint32_t of) {
    const uint32_t outer = o->batch / inner;
    return (outer == 1 ? 0 : image / of) * inner + (inner == 1 ? 0 : image % of);
}

static int batch_ok(const nk_operand *o, int32_t inner, const nk_operand *out, int32_t of) {
    if (inner < 1 || of < 1 || o->batch % (uint32_t)inner || out->batch % (uint32_t)of) return 0;
    const uint32_t outer = o->batch / (uint32_t)inner, out_outer = out->batch / (uint32_t)of;
    return (outer == 1 || outer == out_outer) && (inner == 1 || inner == of) &&
           (o->height == 1 || o->height == out->height);
}

static int32_t check(nk_call *call, const nk_batch_matmul_params *p) {
    const nk_operand *left = &call->operands[NK_BATCH_MATMUL_LEFT],
                     *right = &call->operands[NK_BATCH_MATMUL_RIGHT];
    const nk_operand *out = &call->operands[NK_BATCH_MATMUL_OUTPUT];
    const int wide = nk_same_type(left, out) && nk_same_type(right, out) && nk_is_wide(out);
    if (!wide && (!nk_is_byte(left) || !nk_is_byte(right) || !nk_is_byte(out)))
        return nk_refuse(call, "operands must all be of 8 bits, or all of 16");
    if (wide && (call->operands[NK_BATCH_MATMUL_LUT].present || p->left_zero || p->right_zero ||
                 !nk_output_of(out, p->output_zero, p->clamp_low, p->clamp_high)))
        return nk_refuse(call, "elements of 16 bits take no zero point and no table");
    if ((p->transpose_left | p->transpose_right) & ~1)
        return nk_refuse(call, "a transpose flag is not 0 or 1");
    const uint32_t rows = p->transpose_left ? left->channels : left->width;
    const uint32_t depth = p->transpose_left ? left->width : left->channels;
    const uint32_t inner = p->transpose_right ? right->channels : right->width;
    const uint32_t columns = p->transpose_right ? right->width : right->channels;
    if (rows != out->width || depth != inner || columns != out->channels)
        return nk_refuse(call, "the matrices do not multiply");
    if (!batch_ok(left, p->left_inner, out, p->inner) ||
        !batch_ok(right, p->right_inner, out, p->inner))
        return nk_refuse(call, "the batches do not broadcast");
    if (!nk_zero_ok(p->left_zero) || !nk_zero_ok(p->right_zero) ||
        !(wide ? p->shift >= 1 && p->shift <= 62 : nk_scale_ok(p->multiplier, p->shift, 30)))
        return nk_refuse(call, "zero point, multiplier or shift is out of range");
    if (call->units < 1) return nk_refuse(call, "the packing has no units");
    if (!nk_inside(left) || !nk_inside(right) || !nk_inside(out) ||
        !nk_lut_ok(&call->operands[NK_BATCH_MATMUL_LUT]))
        return nk_refuse(call, "an operand leaves its region");
    return 0;
}

static int32_t product(const side *left, const side *right, uint32_t row, uint32_t column,
                       uint32_t depth) {
    const uint8_t *a = left->data + row * left->outer_step,
                  *b = right->data + column * right->outer_step;
    uint32_t acc = 0;
    for (uint32_t k = 0; k < depth; ++k, a += left->depth_step, b += right->depth_step)
        acc += (uint32_t)((nk_value(*a, left->flip) - left->zero) *
                          (nk_value(*b, right->flip) - right->zero));
    return (int32_t)acc;
}

static int64_t product16(const side *left, const side *right, uint32_t row, uint32_t column,
                         uint32_t depth) {
    const uint8_t *a = left->data + row * left->outer_step,
                  *b = right->data + column * right->outer_step;
    uint64_t acc = 0;
    for (uint32_t k = 0; k < depth; ++k, a += left->depth_step, b += right->depth_step)
        acc += (uint64_t)(int64_t)(nk_load16(a) * nk_load16(b));
    return (int64_t)acc;
}

int32_t nk_batch_matmul(uint32_t verb, nk_call *call) {
    const nk_batch_matmul_params *p = (const nk_batch_matmul_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *l = &call->operands[NK_BATCH_MATMUL_LEFT],
                     *r = &call->operands[NK_BATCH_MATMUL_RIGHT];
    const nk_operand *out = &call->operands[NK_BATCH_MATMUL_OUTPUT];
    const nk_stage stage = nk_make_stage(call, NULL, &call->operands[NK_BATCH_MATMUL_LUT], 0,
                                         p->output_zero, p->clamp_low, p->clamp_high);
    const uint32_t item = nk_item(out);
    side left = {NULL, p->transpose_left ? item : l->pixel, p->transpose_left ? l->pixel : item,
                 nk_flip(l), p->left_zero};
    side right = {NULL, p->transpose_right ? r->pixel : item, p->transpose_right ? item : r->pixel,
                  nk_flip(r), p->right_zero};
    const uint32_t depth = p->transpose_left ? l->width : l->channels;
    for (uint32_t image = 0; image < out->batch; ++image) {
        const uint32_t left_image = image_of(l, image, (uint32_t)p->left_inner, (uint32_t)p->inner);
        const uint32_t right_image =
            image_of(r, image, (uint32_t)p->right_inner, (uint32_t)p->inner);
        for (int32_t y = call->row0; y < call->row1; ++y) {
            left.data = nk_row(l, left_image, l->height == 1 ? 0 : y);
            right.data = nk_row(r, right_image, r->height == 1 ? 0 : y);
            uint8_t *to = nk_row(out, image, y);
            for (uint32_t row = 0; row < out->width; ++row, to += out->pixel) {
                if (nk_stopped(call)) return 0;
                for (uint32_t column = 0; column < out->channels; ++column) {
                    if (nk_is_wide(out)) {
                        const int64_t acc = product16(&left, &right, row, column, depth);
                        const int32_t value = nk_single(acc, p->multiplier, p->shift);
                        nk_store16(to + 2 * (size_t)column,
                                   nk_clamp(value, p->clamp_low, p->clamp_high));
                        continue;
                    }
                    const int32_t acc = product(&left, &right, row, column, depth);
                    to[column] = nk_finish(&stage, nk_mbqm(acc, p->multiplier, p->shift));
                }
            }
        }
    }
    return 0;
}
