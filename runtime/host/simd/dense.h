/* Geometry of dense products, the same for every instruction set: a convolution is cut into blocks
 * of output pixels whose input is copied into a panel without padding cases, channels filled up to
 * the packing's 8. What remains are products of panel rows and packed weights with constant steps.
 *
 * A loop file defines NK_ITEM, the bytes of a panel's element, includes this, provides
 * nk_fill_pixels, nk_fill_absent and a product for blocks, and calls nk_dense_run.
 */
#ifndef NK_DENSE_H
#define NK_DENSE_H

#include "nk_simd.h"

#if NK_HAS_SIMD

#define NK_PACK 8 /* M and N of the packing these loops read in place: that of imxrt700 */
/* A panel this large leaves half of a 32 KiB first-level cache to weights. Where one output row
 * needs more, up to the second figure is used: the stack of a call stays below 128 KiB. */
#define NK_PANEL_GOAL 16384
#define NK_PANEL_MOST 32768
/* Behind a panel: a filled pixel may be stored, and a run read, as a whole vector */
#define NK_SLACK 64

/* One product: `outputs` channels from `first_out` on over `inputs` channels from `first_in` on. */
typedef struct {
    const nk_call *call;
    const nk_operand *in, *out;
    const nk_stage *stage;
    const nk_conv2d_params *p;
    const int8_t *weights; /* packed blocks of these outputs */
    size_t group_bytes;    /* weights of 8 output channels */
    uint32_t first_in, inputs,
        depth; /* depth: elements of a pixel in the panel, NK_PACK-fold but in thin.h */
    uint32_t first_out, outputs;
    uint8_t flip; /* 0x80 when stored bytes are signed */
} nk_dense;

/* What the products of an output add up to at most. */
static inline int32_t nk_most_sum(const nk_dense *d) {
    const uint32_t terms = (uint32_t)(d->p->kernel_h * d->p->kernel_w) * d->inputs;
    return (int32_t)(terms * (d->flip ? 128 : 255) * 128);
}

/* The window of a fully connected layer: it is a convolution of single pixels. */
static inline nk_conv2d_params nk_one_pixel(int32_t weights_zero) {
    return (nk_conv2d_params){.kernel_h = 1,
                              .kernel_w = 1,
                              .stride_h = 1,
                              .stride_w = 1,
                              .dilation_h = 1,
                              .dilation_w = 1,
                              .groups = 1,
                              .weights_zero = weights_zero};
}

/* Output pixels [x, x + columns) of rows [y, y + rows), with their input in the panel. Pixel (r, c)
 * reads, for each i < outer, `length` runs of NK_PACK elements from panel + r * row_step + c * step
 * + i * outer_step on; steps are in bytes. */
typedef struct {
    const uint8_t *panel;
    size_t row_step, step, outer_step;
    uint32_t outer, length;
    uint32_t image, rows, columns;
    int32_t y, x;
} nk_block;

/* Copy `count` pixels of `inputs` bytes to pixels of `depth` elements, the others 0; source pixels
 * lie `stride` apart. */
static void nk_fill_pixels(const nk_dense *d, uint8_t *to, const uint8_t *from, size_t stride,
                           uint32_t count);
/* `count` pixels outside the image. */
static void nk_fill_absent(const nk_dense *d, uint8_t *to, uint32_t count);

typedef void (*nk_product)(const nk_dense *dense, const nk_block *block, const void *state);

/* The columns of a panel row: so many before the image, inside it, and after it. */
typedef struct {
    int32_t first; /* image column of the first one inside */
    int32_t step;  /* between columns */
    uint32_t before, inside, after;
} nk_columns;

static inline int32_t nk_steps(int32_t length, int32_t step) {
    return step == 1 ? length : (length + step - 1) / step;
}

/* `count` columns from x on, `step` apart. */
static inline nk_columns nk_columns_of(const nk_dense *d, int32_t x, int32_t step, uint32_t count) {
    const int32_t width = (int32_t)d->in->width, all = (int32_t)count;
    const int32_t before = x < 0 ? nk_min(nk_steps(-x, step), all) : 0, first = x + before * step;
    const int32_t inside = first < width ? nk_min(nk_steps(width - first, step), all - before) : 0;
    const nk_columns c = {first, step, (uint32_t)before, (uint32_t)inside,
                          (uint32_t)(all - before - inside)};
    return c;
}

/* One row of a panel. Fills may write up to NK_SLACK bytes too far: what lies there is filled
 * later, so it goes from left to right, and from one row to the next. */
static inline void nk_fill_row(const nk_dense *d, const nk_columns *c, uint8_t *to, uint32_t image,
                               int32_t y) {
    if ((uint32_t)y >= d->in->height) { /* or negative */
        nk_fill_absent(d, to, c->before + c->inside + c->after);
        return;
    }
    const size_t pixel = (size_t)d->depth * NK_ITEM;
    if (c->before) nk_fill_absent(d, to, c->before);
    if (c->inside) { /* else `first` may lie left of the image */
        const uint8_t *from =
            nk_row(d->in, image, y) + (size_t)c->first * d->in->pixel + d->first_in;
        nk_fill_pixels(d, to + c->before * pixel, from, (size_t)c->step * d->in->pixel, c->inside);
    }
    if (c->after) nk_fill_absent(d, to + (c->before + c->inside) * pixel, c->after);
}

/* Panels of whole input rows, for windows without dilation. */
static inline void nk_fill_image(const nk_dense *d, nk_block *b, uint8_t *panel) {
    const nk_conv2d_params *p = d->p;
    const int dense_x = p->kernel_w > 1, dense_y = p->kernel_h > 1;
    const uint32_t columns =
        dense_x ? (b->columns - 1) * (uint32_t)p->stride_w + (uint32_t)p->kernel_w : b->columns;
    const uint32_t rows =
        dense_y ? (b->rows - 1) * (uint32_t)p->stride_h + (uint32_t)p->kernel_h : b->rows;
    const size_t pitch = (size_t)columns * d->depth * NK_ITEM;
    const nk_columns c =
        nk_columns_of(d, b->x * p->stride_w - p->pad_left, dense_x ? 1 : p->stride_w, columns);
    int32_t y = b->y * p->stride_h - p->pad_top;
    for (uint32_t r = 0; r < rows; ++r, y += dense_y ? 1 : p->stride_h)
        nk_fill_row(d, &c, panel + r * pitch, b->image, y);
    b->step = (dense_x ? (size_t)p->stride_w * d->depth : d->depth) * NK_ITEM;
    b->row_step = dense_y ? (size_t)p->stride_h * pitch : pitch;
    b->outer = (uint32_t)p->kernel_h;
    b->outer_step = pitch;
    b->length = nk_blocks((uint32_t)p->kernel_w * d->depth, NK_PACK);
}

/* Panels of one tap after the other, for any window; one output row at a time. */
static inline void nk_fill_taps(const nk_dense *d, nk_block *b, uint8_t *panel) {
    const nk_conv2d_params *p = d->p;
    const size_t slab = (size_t)b->columns * d->depth * NK_ITEM;
    for (int32_t ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t y = b->y * p->stride_h - p->pad_top + ky * p->dilation_h;
        for (int32_t kx = 0; kx < p->kernel_w; ++kx, panel += slab) {
            const int32_t x = b->x * p->stride_w - p->pad_left + kx * p->dilation_w;
            const nk_columns c = nk_columns_of(d, x, p->stride_w, b->columns);
            nk_fill_row(d, &c, panel, b->image, y);
        }
    }
    b->step = d->depth * NK_ITEM;
    b->row_step = 0;
    b->outer = (uint32_t)(p->kernel_h * p->kernel_w);
    b->outer_step = slab;
    b->length = d->depth / NK_PACK;
}

/* Largest block that fits: rows and columns of output; 0 columns when not even one pixel does. */
static inline void nk_block_size(const nk_dense *d, uint32_t rows, uint32_t columns, int image,
                                 uint32_t *fit_rows, uint32_t *fit_columns) {
    const nk_conv2d_params *p = d->p;
    const uint64_t kh = (uint32_t)p->kernel_h, kw = (uint32_t)p->kernel_w,
                   sh = kh > 1 ? (uint32_t)p->stride_h : 1;
    const uint64_t sw = image && kw > 1 ? (uint32_t)p->stride_w : 1, fixed = image ? kw - 1 : 0;
    const uint64_t row_taps = image ? kh : kh * kw; /* panel rows of one output row */
    const uint64_t most =
        NK_PANEL_MOST / NK_ITEM / d->depth / row_taps; /* panel columns of one output row */
    *fit_rows = 1;
    *fit_columns = 0;
    if (most < fixed + 1) return;
    const uint64_t fit = (most - fixed - 1) / sw + 1;
    if (fit < columns) {
        const uint32_t parts = nk_blocks(columns, (uint32_t)fit);
        *fit_columns = nk_blocks(columns, parts);
        return;
    }
    *fit_columns = columns;
    const uint64_t row_bytes = ((columns - 1) * sw + 1 + fixed) * d->depth * NK_ITEM,
                   panel_rows = NK_PANEL_GOAL / row_bytes;
    if (image && panel_rows > kh)
        *fit_rows = nk_min((int32_t)rows, (int32_t)((panel_rows - kh) / sh + 1));
}

/* All blocks of rows [row0, row1) of one image; 0 when the window is too large for a panel. */
static inline int nk_dense_rows(const nk_dense *d, uint32_t image, int32_t row0, int32_t row1,
                                nk_product product, const void *state) {
    const nk_conv2d_params *p = d->p;
    const int whole = p->dilation_h == 1 && p->dilation_w == 1;
    uint32_t rows, columns;
    nk_block_size(d, (uint32_t)(row1 - row0), d->out->width, whole, &rows, &columns);
    if (columns == 0) return 0;
    uint8_t panel[NK_PANEL_MOST + NK_SLACK] __attribute__((aligned(64)));
    for (int32_t y = row0; y < row1; y += (int32_t)rows) {
        for (uint32_t x = 0; x < d->out->width; x += columns) {
            if (nk_stopped(d->call)) return 1;
            nk_block b = {.panel = panel, .image = image, .y = y, .x = (int32_t)x};
            b.rows = nk_min((int32_t)rows, row1 - y);
            b.columns = nk_min((int32_t)columns, (int32_t)(d->out->width - x));
            if (whole) nk_fill_image(d, &b, panel);
            else nk_fill_taps(d, &b, panel);
            product(d, &b, state);
        }
    }
    return 1;
}

/* Rows from y on that lie one after the other in memory, as one row: for windows of one tap. */
static inline uint32_t nk_joined(const nk_operand *o, int32_t y, uint32_t rows) {
    const uint32_t left = o->ring - (uint32_t)y % o->ring,
                   most = NK_REACH_MAX / (o->width ? o->width : 1);
    if (o->pitch != (uint64_t)o->width * o->pixel || most < 2) return 1;
    return (uint32_t)nk_min(nk_min((int32_t)left, (int32_t)rows), (int32_t)most);
}

/* A one-tap product over rows [row0, row1): rows without gaps become one long row, so that narrow
 * images fill tiles. */
static inline int nk_dense_pointwise(const nk_dense *d, uint32_t image, int32_t row0, int32_t row1,
                                     nk_product product, const void *state) {
    for (int32_t y = row0; y < row1;) {
        const uint32_t left = (uint32_t)(row1 - y), a = nk_joined(d->in, y, left),
                       b = nk_joined(d->out, y, left);
        const uint32_t rows = a < b ? a : b;
        nk_operand in = *d->in, out = *d->out;
        in.data = nk_row(d->in, image, y), out.data = nk_row(d->out, image, y);
        in.width *= rows, out.width *= rows;
        in.height = out.height = in.ring = out.ring = 1;
        nk_dense joined = *d;
        joined.in = &in, joined.out = &out;
        if (!nk_dense_rows(&joined, 0, 0, 1, product, state)) return 0;
        y += (int32_t)rows;
    }
    return 1;
}

static inline int nk_dense_run(const nk_dense *d, uint32_t image, int32_t row0, int32_t row1,
                               nk_product product, const void *state) {
    const nk_conv2d_params *p = d->p;
    const int pointwise = p->kernel_h == 1 && p->kernel_w == 1 && p->stride_h == 1 &&
                          p->stride_w == 1 && p->pad_top == 0 && p->pad_left == 0 &&
                          d->in->height == d->out->height && d->in->width == d->out->width;
    return pointwise ? nk_dense_pointwise(d, image, row0, row1, product, state)
                     : nk_dense_rows(d, image, row0, row1, product, state);
}

#endif
#endif
