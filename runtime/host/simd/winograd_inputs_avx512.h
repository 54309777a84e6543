/* B' x B of winograd_avx512.h: inputs of tiles, down the columns of a whole row of tiles first,
 * where neighbours share their columns, then across each tile. */
#ifndef NK_WINOGRAD_INPUTS_AVX512_H
#define NK_WINOGRAD_INPUTS_AVX512_H

#include "dense.h"

#if NK_HAS_X86

#include <immintrin.h>

#define NK_WINOGRAD_SIDE 4 /* of a tile of outputs */
#define NK_WINOGRAD_SPAN 6 /* of its inputs, and of products */
#define NK_WINOGRAD_TILES \
    4                        /* at a time: 24 accumulators, which leaves 8 registers for the rest \
                              */
#define NK_WINOGRAD_CHUNK 16 /* input channels at a time */

/* B' of six inputs, as INT16 vectors of any length. */
#define NK_WINOGRAD_INPUTS1(x, to) \
    do { \
        const __typeof__((x)[0]) outer = (x)[4] - (x)[2], inner = ((x)[3] - (x)[1]) * 2, \
                                 t = (x)[4] - (x)[2] * 4, u = (x)[3] - (x)[1] * 4; \
        (to)[0] = ((x)[0] - (x)[2]) * 4 + outer; \
        (to)[1] = t + u; \
        (to)[2] = t - u; \
        (to)[3] = outer + inner; \
        (to)[4] = outer - inner; \
        (to)[5] = (x)[5] - (x)[3] - inner * 2; \
    } while (0)

typedef int16_t nk_words16 __attribute__((vector_size(32)));
typedef int16_t nk_words32 __attribute__((vector_size(64)));

/* A row of tiles: six rows of the image, and the columns under its windows. */
typedef struct {
    const uint8_t *at[6]; /* the first column inside the image */
    size_t step[6];       /* to the next column; 0 for an absent row, which stands still */
    int all;              /* no row is absent */
    nk_columns columns;
} nk_winograd_strip;

/* B' of 16 channels from `channel` on, of the columns inside the image. Rows lie in pairs, so that
 * a register holds two: [3][columns][2][16]. */
static inline __attribute__((always_inline)) void nk_winograd_chunk(const nk_winograd_strip *s,
                                                                    uint32_t channel, int16_t *to,
                                                                    size_t columns,
                                                                    const int is_signed,
                                                                    const int all) {
    for (size_t x = 0; x < s->columns.inside; ++x, to += 32) {
        nk_words16 column[6], made[6];
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) {
            const uint8_t *at = s->at[i] + x * s->step[all ? 0 : i] + channel;
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
            column[i] =
                (nk_words16)(is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes));
        }
        NK_WINOGRAD_INPUTS1(column, made);
#pragma GCC unroll 6
        for (uint32_t i = 0; i < 6; ++i)
            memcpy(to + (size_t)(i / 2) * columns * 32 + i % 2 * 16, &made[i], sizeof made[i]);
    }
}

/* The same of columns [x, end) outside the image: they are absent in all six rows, for which B' is
 * -6 times the value in its second row and 0 in the others. */
static inline void nk_winograd_absent(const nk_dense *d, int16_t *to, size_t columns, size_t x,
                                      size_t end) {
    const nk_words16 none = {0}, value = none + (int16_t)(-6 * d->p->input_zero);
    for (; x < end; ++x)
        for (uint32_t i = 0; i < 6; ++i)
            memcpy(to + ((size_t)(i / 2) * columns + x) * 32 + i % 2 * 16, i == 1 ? &value : &none,
                   sizeof none);
}

/* B' of a strip, chunk by chunk. */
static inline __attribute__((always_inline)) void nk_winograd_down(const nk_dense *d,
                                                                   const nk_winograd_strip *s,
                                                                   int16_t *to,
                                                                   const int is_signed) {
    const nk_columns *c = &s->columns;
    const size_t right = c->before + c->inside, columns = right + c->after;
    for (uint32_t k = 0; k < d->inputs; k += NK_WINOGRAD_CHUNK, to += 3 * columns * 32) {
        nk_winograd_absent(d, to, columns, 0, c->before);
        nk_winograd_absent(d, to, columns, right, columns);
        if (s->all) nk_winograd_chunk(s, k, to + (size_t)c->before * 32, columns, is_signed, 1);
        else nk_winograd_chunk(s, k, to + (size_t)c->before * 32, columns, is_signed, 0);
    }
}

/* Elements of a chunk of inputs of four tiles in one column: [tiles][6 rows][16 channels]. */
#define NK_WINOGRAD_FOUR ((size_t)NK_WINOGRAD_TILES * 6 * NK_WINOGRAD_CHUNK)

/* B of one tile, whose first column is at `from`, to [6 columns][chunks] of such. */
static __attribute__((noinline)) void nk_winograd_across(uint32_t chunks, const int16_t *from,
                                                         size_t columns, int16_t *to) {
    const size_t apart = chunks * NK_WINOGRAD_FOUR;
    for (uint32_t k = 0; k < chunks; ++k, to += NK_WINOGRAD_FOUR - 96) {
        for (uint32_t pair = 0; pair < 3; ++pair, from += columns * 32, to += 32) {
            nk_words32 in[6], made[6];
#pragma GCC unroll 6
            for (uint32_t j = 0; j < 6; ++j) memcpy(&in[j], from + (size_t)j * 32, sizeof in[j]);
            NK_WINOGRAD_INPUTS1(in, made);
#pragma GCC unroll 6
            for (uint32_t j = 0; j < 6; ++j) memcpy(to + j * apart, &made[j], sizeof made[j]);
        }
    }
}

/* The row of tiles whose first input row is y; rows from `end` on are not asked for, and may not be
 * there. */
static inline nk_winograd_strip nk_winograd_strip_of(const nk_dense *d, uint32_t image, int32_t y,
                                                     int32_t end, const nk_columns *columns,
                                                     const uint8_t *absent) {
    nk_winograd_strip s = {.all = 1, .columns = *columns};
    for (int32_t i = 0; i < 6; ++i) {
        const int inside = y + i >= 0 && y + i < nk_min(end, (int32_t)d->in->height);
        s.at[i] = absent, s.step[i] = 0;
        s.all &= inside;
        if (!inside || !columns->inside) continue;
        s.at[i] = nk_row(d->in, image, y + i) + (size_t)columns->first * d->in->pixel + d->first_in;
        s.step[i] = d->in->pixel;
    }
    return s;
}

#endif
#endif
