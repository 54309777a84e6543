/* lstm: LiteRT's integer LSTM. Rows are steps in time, images and pixels are sequences of the
 * batch; hidden and cell state go on from the row before, or from the last run. */
#include "nk_fixed16.h"
#include "nk_window.h"

enum { COUPLED = 1, PEEPHOLE = 2, NORMALIZE = 4, PROJECT = 8 };
enum { FORGET, CELL, OUTPUT, INPUT }; /* gates in the order of weights and table */
enum { SIGNED = 0x80 };               /* what nk_flip() says of INT8 */

/* Words in front of each gate's vectors. */
typedef struct {
    int32_t input_multiplier, input_shift;
    int32_t hidden_multiplier, hidden_shift;
    int32_t peephole_multiplier, peephole_shift;
    int32_t norm_multiplier, norm_shift;
    int32_t variance_guard;
} gate_head;

enum { HEAD_WORDS = sizeof(gate_head) / sizeof(int32_t) };

typedef struct {
    const nk_call *call;
    const nk_lstm_params *p;
    uint32_t inputs, outputs, cells, gates;
    size_t input_bytes, hidden_bytes;          /* of the weights of one gate */
    uint32_t gate_words, peephole_at, norm_at; /* in the table, from the start of a gate */
} shape;

static shape shape_of(const nk_call *call, const nk_lstm_params *p) {
    shape s = {.call = call, .p = p};
    s.inputs = call->operands[NK_LSTM_INPUT].channels;
    s.outputs = call->operands[NK_LSTM_OUTPUT].channels;
    s.cells = (uint32_t)p->cells;
    s.gates = p->flags & COUPLED ? 3 : 4;
    s.input_bytes = (size_t)nk_dense_bytes(call, s.cells, 1, s.inputs);
    s.hidden_bytes = (size_t)nk_dense_bytes(call, s.cells, 1, s.outputs);
    s.peephole_at = HEAD_WORDS + 2 * s.cells;
    s.norm_at = s.peephole_at + (p->flags & PEEPHOLE ? s.cells : 0);
    s.gate_words = s.norm_at + (p->flags & NORMALIZE ? 2 * s.cells : 0);
    return s;
}

/* Cells and channels are bounded, so that no size below wraps. */
enum { MOST = 1 << 14 };

static int32_t check(nk_call *call, const nk_lstm_params *p) {
    const nk_operand *in = &call->operands[NK_LSTM_INPUT], *out = &call->operands[NK_LSTM_OUTPUT];
    const nk_operand *hidden = &call->operands[NK_LSTM_HIDDEN],
                     *cell = &call->operands[NK_LSTM_CELL];
    if (in->dtype != NEUTRON_DTYPE_INT8 || out->dtype != NEUTRON_DTYPE_INT8)
        return nk_refuse(call, "input and output must be INT8");
    if (hidden->dtype != NEUTRON_DTYPE_INT8 || cell->dtype != NEUTRON_DTYPE_INT16)
        return nk_refuse(call, "the hidden state must be INT8, the cell state INT16");
    if (in->batch != out->batch || in->height != out->height || in->width != out->width)
        return nk_refuse(call, "input and output differ in steps or batch");
    if (!nk_packing_ok(call)) return nk_refuse(call, "the packing has more than 64 units or lanes");
    if (p->cells < 1 || p->cells > MOST || in->channels > MOST || out->channels > MOST)
        return nk_refuse(call, "more than 16384 cells or channels");
    if (p->flags & ~(COUPLED | PEEPHOLE | NORMALIZE | PROJECT))
        return nk_refuse(call, "unknown flags");
    if (!(p->flags & PROJECT) && out->channels != (uint32_t)p->cells)
        return nk_refuse(call, "without projection there is an output per cell");
    if (p->cell_scale < -15 || p->cell_scale > -9)
        return nk_refuse(call, "the scale of the cell state is not from 2^-15 to 2^-9");
    const shape s = shape_of(call, p);
    const uint64_t sequences = (uint64_t)out->batch * out->width;
    uint64_t weights = (uint64_t)s.gates * (s.input_bytes + s.hidden_bytes);
    uint64_t words = (uint64_t)s.gates * s.gate_words;
    if (p->flags & PROJECT) {
        weights += nk_dense_bytes(call, s.outputs, 1, s.cells);
        words += s.outputs;
    }
    if (!nk_inside(in) || !nk_inside(out) ||
        !nk_inside_flat(&call->operands[NK_LSTM_WEIGHTS], weights) ||
        !nk_inside_flat(&call->operands[NK_LSTM_TABLE], 4 * words) ||
        !nk_inside_flat(&call->operands[NK_LSTM_WORKSPACE], (uint64_t)9 * s.cells + 1) ||
        !nk_inside_flat(hidden, sequences * s.outputs) ||
        !nk_inside_flat(cell, 2 * sequences * s.cells))
        return nk_refuse(call, "an operand leaves its region");
    return 0;
}

static int32_t word(const uint8_t *table, size_t at) { return nk_load32(table + 4 * at); }

static int32_t rescaled(int32_t v, int32_t multiplier, int32_t shift) {
    return nk_mbqm(v, multiplier, nk_safe_shift(NEUTRON_ROUNDING_DOUBLE, shift));
}

/* sums[c] += rescaled(bias[c] + weights[c] . vector), saturating to 16 bits. */
static void accumulate(const shape *s, const uint8_t *vector, uint32_t length,
                       const int8_t *weights, const uint8_t *bias, int32_t multiplier,
                       int32_t shift, int16_t *sums) {
    const nk_call *call = s->call;
    const size_t block = (size_t)nk_dense_bytes(call, 1, 1, length);
    for (uint32_t cell = 0; cell < s->cells; cell += call->units, weights += block) {
        const uint32_t count = s->cells - cell < call->units ? s->cells - cell : call->units;
        uint32_t acc[NK_MAX_UNITS] = {0};
        nk_dot(call, vector, SIGNED, 0, length, weights, acc);
        for (uint32_t m = 0; m < count; m++) {
            const int32_t total = nk_wrap_add((int32_t)acc[m], word(bias, cell + m));
            const int64_t sum = (int64_t)rescaled(total, multiplier, shift) + sums[cell + m];
            sums[cell + m] = (int16_t)nk_sat16(nk_saturate(sum));
        }
    }
}

/* 1 / sqrt(v) as a multiplier and a shift to the right, v >= 1. */
static int32_t inverse_root(int32_t v, int32_t *shift) {
    if (v <= 1) { /* the reference's special case: just below 1 */
        *shift = 0;
        return INT32_MAX;
    }
    int32_t right = 11;
    while (v >= 1 << 29) {
        v /= 4;
        right++;
    }
    const int32_t pairs = (__builtin_clz((uint32_t)v) - 1) / 2;
    right -= pairs - 1;
    v <<= 2 * (pairs - 1);
    const int32_t half = nk_rdp(v >> 1, 1);
    int32_t x = 1 << 28; /* Q3.28 */
    for (int step = 0; step < 5; step++) {
        const int32_t cube = nk_saturate((int64_t)nk_srdhm(nk_srdhm(x, x), x) * (1 << 6));
        x = nk_saturate(((int64_t)nk_srdhm((1 << 28) + (1 << 27), x) - nk_srdhm(half, cube)) *
                        (1 << 3));
    }
    x = nk_srdhm(x, 1518500250); /* sqrt(1/2) */
    if (right < 0) {
        x = nk_shl(x, -right);
        right = 0;
    }
    *shift = -right;
    return x;
}

/* Layer normalization of one gate, in place. */
static void normalize(const shape *s, const gate_head *head, const uint8_t *coefficients,
                      int16_t *sums) {
    int64_t total = 0, squares = 0;
    for (uint32_t c = 0; c < s->cells; c++) {
        total += sums[c];
        squares += (int32_t)sums[c] * sums[c];
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a layer without cells was refused */
    const int32_t mean = (int32_t)(total * 1024 / (int32_t)s->cells);
    const int64_t spread = squares * ((1 << 20) / (int32_t)s->cells) - (int64_t)mean * mean;
    int32_t variance = (int32_t)(spread / (1 << 20));
    if (variance < 1) variance = nk_max(head->variance_guard, 1);
    int32_t shift;
    const int32_t inverse = inverse_root(variance, &shift);
    for (uint32_t c = 0; c < s->cells; c++) {
        const int32_t scaled = rescaled(1024 * sums[c] - mean, inverse, shift);
        const int32_t weighted =
            nk_wrap_add((int32_t)((uint32_t)scaled * (uint32_t)word(coefficients, c)),
                        word(coefficients, s->cells + c));
        const int64_t wide = weighted;
        const int32_t rounded = (int32_t)((wide > 0 ? wide + 512 : wide - 512) / 1024);
        sums[c] = (int16_t)nk_sat16(rescaled(rounded, head->norm_multiplier, head->norm_shift));
    }
}

static void gate(const shape *s, uint32_t which, const uint8_t *input, const uint8_t *hidden,
                 const int16_t *cell, int16_t *sums) {
    const nk_call *call = s->call;
    const uint8_t *table = call->operands[NK_LSTM_TABLE].data + 4 * (size_t)which * s->gate_words;
    const int8_t *weights = (const int8_t *)call->operands[NK_LSTM_WEIGHTS].data +
                            which * (s->input_bytes + s->hidden_bytes);
    gate_head head;
    memcpy(&head, table, sizeof head);
    memset(sums, 0, sizeof *sums * s->cells);
    const uint8_t *bias = table + sizeof head;
    accumulate(s, input, s->inputs, weights, bias, head.input_multiplier, head.input_shift, sums);
    accumulate(s, hidden, s->outputs, weights + s->input_bytes, bias + 4 * (size_t)s->cells,
               head.hidden_multiplier, head.hidden_shift, sums);
    if (s->p->flags & PEEPHOLE && which != CELL) {
        for (uint32_t c = 0; c < s->cells; c++) {
            /* 16-bit weights are stored as words. */
            const int32_t weight = (int16_t)word(table, s->peephole_at + c);
            const int32_t seen =
                rescaled(weight * cell[c], head.peephole_multiplier, head.peephole_shift);
            sums[c] = (int16_t)nk_sat16(nk_saturate((int64_t)seen + sums[c]));
        }
    }
    if (s->p->flags & NORMALIZE) normalize(s, &head, table + 4 * (size_t)s->norm_at, sums);
    for (uint32_t c = 0; c < s->cells; c++) {
        sums[c] = (int16_t)(which == CELL ? nk_tanh16(sums[c], 3) : nk_logistic16(sums[c]));
    }
}

static void project(const shape *s, const uint8_t *hidden, uint8_t *output) {
    const nk_call *call = s->call;
    const int8_t *weights = (const int8_t *)call->operands[NK_LSTM_WEIGHTS].data +
                            s->gates * (s->input_bytes + s->hidden_bytes);
    const uint8_t *bias = call->operands[NK_LSTM_TABLE].data + 4 * (size_t)s->gates * s->gate_words;
    const size_t block = (size_t)nk_dense_bytes(call, 1, 1, s->cells);
    const int32_t clip = s->p->projection_clip;
    for (uint32_t at = 0; at < s->outputs; at += call->units, weights += block) {
        const uint32_t count = s->outputs - at < call->units ? s->outputs - at : call->units;
        uint32_t acc[NK_MAX_UNITS] = {0};
        nk_dot(call, hidden, SIGNED, 0, s->cells, weights, acc);
        for (uint32_t m = 0; m < count; m++) {
            const int32_t total = nk_wrap_add((int32_t)acc[m], word(bias, at + m));
            const int64_t scaled =
                (int64_t)rescaled(total, s->p->projection_multiplier, s->p->projection_shift) +
                s->p->output_zero;
            int32_t value = nk_clamp(nk_saturate(scaled), INT8_MIN, INT8_MAX);
            if (clip > 0) value = nk_clamp(value, -clip, clip);
            output[at + m] = (uint8_t)value;
        }
    }
}

/* One step of one sequence. */
static void step(const shape *s, const uint8_t *input, uint8_t *hidden, uint8_t *cell_bytes,
                 uint8_t *output) {
    const nk_lstm_params *p = s->p;
    uint8_t *const space = s->call->operands[NK_LSTM_WORKSPACE].data;
    int16_t *const forget = (int16_t *)(void *)(space + ((uintptr_t)space & 1));
    int16_t *const modulation = forget + s->cells, *const in = modulation + s->cells,
                   *const out = in + s->cells;
    uint8_t *const made = (uint8_t *)(out + s->cells);
    int16_t *const cell = (int16_t *)(void *)cell_bytes;
    gate(s, FORGET, input, hidden, cell, forget);
    gate(s, CELL, input, hidden, cell, modulation);
    if (p->flags & COUPLED) {
        for (uint32_t c = 0; c < s->cells; c++) in[c] = (int16_t)(INT16_MAX - forget[c]);
    } else {
        gate(s, INPUT, input, hidden, cell, in);
    }
    for (uint32_t c = 0; c < s->cells; c++) {
        const int32_t kept = (int16_t)nk_rdp(forget[c] * cell[c], 15);
        const int32_t added = (int16_t)nk_rdp(in[c] * modulation[c], 30 + p->cell_scale);
        const int32_t sum = nk_sat16(kept + added);
        cell[c] = (int16_t)(p->cell_clip > 0 ? nk_clamp(sum, -p->cell_clip, p->cell_clip) : sum);
    }
    gate(s, OUTPUT, input, hidden, cell, out);
    for (uint32_t c = 0; c < s->cells; c++) {
        const int32_t product = out[c] * nk_tanh16(cell[c], 15 + p->cell_scale);
        const int64_t scaled =
            (int64_t)rescaled(product, p->hidden_multiplier, p->hidden_shift) + p->hidden_zero;
        made[c] = (uint8_t)nk_clamp(nk_saturate(scaled), INT8_MIN, INT8_MAX);
    }
    if (p->flags & PROJECT) {
        project(s, made, output);
    } else {
        memmove(output, made, s->cells);
    }
    memmove(hidden, output, s->outputs);
}

int32_t nk_lstm(uint32_t verb, nk_call *call) {
    const nk_lstm_params *p = (const nk_lstm_params *)(const void *)call->params;
    if (verb == NK_CHECK) return check(call, p);
    const nk_operand *in = &call->operands[NK_LSTM_INPUT], *out = &call->operands[NK_LSTM_OUTPUT];
    const shape s = shape_of(call, p);
    for (uint32_t image = 0; image < out->batch; image++) {
        for (uint32_t x = 0; x < out->width; x++) {
            const size_t sequence = (size_t)image * out->width + x;
            uint8_t *hidden = call->operands[NK_LSTM_HIDDEN].data + sequence * s.outputs;
            uint8_t *cell = call->operands[NK_LSTM_CELL].data + 2 * sequence * s.cells;
            for (int32_t y = call->row0; y < call->row1; y++) {
                if (nk_stopped(call)) return 0;
                step(&s, nk_row(in, image, y) + (size_t)x * in->pixel, hidden, cell,
                     nk_row(out, image, y) + (size_t)x * out->pixel);
            }
        }
    }
    return 0;
}
