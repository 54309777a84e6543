#include "pool_pixels.h"

#if NK_HAS_DSP

bool nk_pool_passes(const nk_stage *stage, int32_t flip) {
    return !stage->lut && stage->zero == 0 && stage->low == (flip ? INT8_MIN : 0) &&
           stage->high == (flip ? INT8_MAX : UINT8_MAX);
}

static uint32_t length_of(nk_span span) {
    return span.last > span.first ? (uint32_t)(span.last - span.first) : 0;
}

int nk_pool_pixels(const nk_call *call, const nk_stage *stage, nk_pool_pixel make) {
    const nk_operand *in = &call->operands[NK_MAX_POOL2D_INPUT],
                     *out = &call->operands[NK_MAX_POOL2D_OUTPUT];
    const nk_window w = nk_undilated(call);
    nk_pool_window window = {.in = in};
    if (!nk_is_byte(in) || !nk_is_byte(out) ||
        (uint64_t)w.kernel_h * (uint32_t)w.kernel_w > NK_POOL_TAPS)
        return 0;
    for (window.image = 0; window.image < out->batch; ++window.image) {
        for (int32_t y = call->row0; y < call->row1; ++y) {
            uint8_t *to = nk_row(out, window.image, y);
            window.rows = nk_span_of(y, w.stride_h, w.pad_top, w.kernel_h, in->height);
            if (nk_stopped(call)) return 1;
            for (uint32_t x = 0; x < out->width; ++x, to += out->pixel) {
                window.columns =
                    nk_span_of((int32_t)x, w.stride_w, w.pad_left, w.kernel_w, in->width);
                window.count = length_of(window.rows) * length_of(window.columns);
                if (window.count == 0) return 0;
                make(stage, &window, to);
            }
        }
    }
    return 1;
}

#endif
