/* Dense products of 16-bit activations on packed weights as they lie: a block of [8 outputs][8
 * inputs] bytes becomes two registers of 16-bit numbers, 8 activations are broadcast to 4 outputs
 * each, and VPDPWSSD leaves four partial sums of 32 bits per output.
 *
 * A block adds two products to a partial sum, so that 126 blocks leave room to add two of them in
 * 32 bits. Up to 63 all four are added there; above, the last addition is one of 64 bits, and
 * longer inputs are cut into parts of 126. */
#include "loops.h"

#if NK_HAS_X86

#include "dense16.h"
#include "wide_avx512.h"

#define CHUNK 24 /* pixels whose sums wait for the stage: 3 KiB of 64 bits */
#define TILE 6   /* pixels: 24 accumulators leave registers for weights and activations */
#define SHORT (NK_WIDE_RUN / NK_PACK)
#define PART (2 * SHORT)

/* Inputs of a part: `outer` runs of `length` blocks. */
typedef struct {
    const int8_t *weights;
    size_t group; /* bytes from 8 outputs to the next */
    size_t step, outer_step, weights_step;
    uint32_t outer, length;
} part;

/* Sums of two partial ones: dword 4 * (o % 4) + o / 4 belongs to output o. */
NK_INLINE void halves(const __m512i sum[4], __m512i *first, __m512i *second) {
    const __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(sum[0], sum[1]),
                                       _mm512_unpackhi_epi32(sum[0], sum[1]));
    const __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(sum[2], sum[3]),
                                       _mm512_unpackhi_epi32(sum[2], sum[3]));
    *first = _mm512_unpacklo_epi64(a, b);
    *second = _mm512_unpackhi_epi64(a, b);
}

NK_INLINE __m512i in_order(__m512i sums) {
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), sums);
}

NK_INLINE __m512i widened(__m512i a, __m512i b, const int half) {
    const __m256i x = half ? _mm512_extracti64x4_epi64(a, 1) : _mm512_castsi512_si256(a);
    const __m256i y = half ? _mm512_extracti64x4_epi64(b, 1) : _mm512_castsi512_si256(b);
    return _mm512_add_epi64(_mm512_cvtepi32_epi64(x), _mm512_cvtepi32_epi64(y));
}

/* P pixels times G groups of 8 outputs. `to` holds 16 sums a pixel: of 32 bits, or of 64 to which
 * these are added. */
NK_INLINE void tile(const part *t, const uint8_t *panel, void *to, int wide, const int P,
                    const int G) {
    __m512i sum[TILE][4];
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g) sum[p][g] = _mm512_setzero_si512();
    const int8_t *weights = t->weights;
    for (uint32_t o = 0; o < t->outer; ++o, panel += t->outer_step, weights += t->weights_step) {
        const uint8_t *a = panel;
        const int8_t *w = weights;
        for (uint32_t i = 0; i < t->length; ++i, a += NK_PACK * NK_ITEM, w += NK_PACK * NK_PACK) {
            __m512i v[4];
#pragma GCC unroll 4
            for (int g = 0; g < 2 * G; ++g)
                v[g] = _mm512_cvtepi8_epi16(_mm256_loadu_si256(
                    (const __m256i *)(const void *)(w + g / 2 * t->group + g % 2 * 32)));
#pragma GCC unroll 6
            for (int p = 0; p < P; ++p) {
                const __m512i x = _mm512_broadcast_i32x4(
                    _mm_loadu_si128((const __m128i *)(const void *)(a + p * t->step)));
#pragma GCC unroll 4
                for (int g = 0; g < 2 * G; ++g) nk_dot2(&sum[p][g], x, v[g]);
            }
        }
    }
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p) {
        __m512i first, second;
        halves(sum[p], &first, &second);
        if (!wide) {
            _mm512_storeu_si512((int32_t *)to + p * 16, in_order(_mm512_add_epi32(first, second)));
            continue;
        }
        int64_t *sums = (int64_t *)to + p * 16;
        first = in_order(first), second = in_order(second);
        _mm512_storeu_si512(sums,
                            _mm512_add_epi64(_mm512_loadu_si512(sums), widened(first, second, 0)));
        _mm512_storeu_si512(
            sums + 8, _mm512_add_epi64(_mm512_loadu_si512(sums + 8), widened(first, second, 1)));
    }
}

typedef void (*tile_function)(const part *t, const uint8_t *panel, void *to, int wide);

// clang-format off
#define NK_TILE16(P, G)                                                                       \
    static void tile_##P##_##G(const part *t, const uint8_t *panel, void *to, int wide) {     \
        tile(t, panel, to, wide, P, G);                                                       \
    }
NK_TILE16(1, 1) NK_TILE16(2, 1) NK_TILE16(3, 1) NK_TILE16(4, 1) NK_TILE16(5, 1) NK_TILE16(6, 1)
NK_TILE16(1, 2) NK_TILE16(2, 2) NK_TILE16(3, 2) NK_TILE16(4, 2) NK_TILE16(5, 2) NK_TILE16(6, 2)
    // clang-format on
    static const tile_function of[2][TILE + 1] = {
        {NULL, tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1},
        {NULL, tile_1_2, tile_2_2, tile_3_2, tile_4_2, tile_5_2, tile_6_2}};

/* `count` pixels of a panel row, in tiles of nearly equal size. */
static void tiles(const part *t, const uint8_t *panel, uint32_t count, uint8_t *to, int wide,
                  int two) {
    const size_t row = 16 * (wide ? sizeof(int64_t) : sizeof(int32_t));
    for (uint32_t parts = nk_blocks(count, TILE); parts; --parts) {
        const uint32_t size = nk_blocks(count, parts);
        of[two][size](t, panel, to, wide);
        panel += size * t->step, to += size * row, count -= size;
    }
}

/* Up to 16 outputs of a block. */
typedef struct {
    const nk_dense *d;
    const nk_block *b;
    const int8_t *weights;
    nk_wide16 lanes;
    int two; /* groups of 8 outputs */
} slab;

static void short_pixels(const slab *l, const uint8_t *panel, uint32_t count, uint8_t *to) {
    const nk_block *b = l->b;
    int32_t acc[CHUNK * 16] __attribute__((aligned(64)));
    const part all = {l->weights,
                      l->d->group_bytes,
                      b->step,
                      b->outer_step,
                      (size_t)b->length * NK_PACK * NK_PACK,
                      b->outer,
                      b->length};
    tiles(&all, panel, count, (uint8_t *)acc, 0, l->two);
    for (uint32_t i = 0; i < count; ++i, to += l->d->out->pixel)
        nk_wide_finish32(&l->lanes, _mm512_load_si512(acc + 16 * i), to);
}

static void long_pixels(const slab *l, const uint8_t *panel, uint32_t count, uint8_t *to) {
    const nk_block *b = l->b;
    int64_t sums[CHUNK * 16] __attribute__((aligned(64)));
    const uint32_t length = b->length < PART ? b->length : PART, outer = PART / length;
    const size_t weights_step = (size_t)b->length * NK_PACK * NK_PACK;
    memset(sums, 0, (size_t)count * 16 * sizeof *sums);
    for (uint32_t o = 0; o < b->outer; o += outer) {
        for (uint32_t skip = 0; skip < b->length; skip += length) {
            const part some = {
                l->weights + o * weights_step + (size_t)skip * NK_PACK * NK_PACK,
                l->d->group_bytes,
                b->step,
                b->outer_step,
                weights_step,
                b->outer - o < outer ? b->outer - o : outer,
                b->length - skip < length ? b->length - skip : length,
            };
            tiles(&some, panel + o * b->outer_step + (size_t)skip * NK_PACK * NK_ITEM, count,
                  (uint8_t *)sums, 1, l->two);
        }
    }
    for (uint32_t i = 0; i < count; ++i, to += l->d->out->pixel)
        nk_wide_finish64(&l->lanes, _mm512_load_si512(sums + 16 * i),
                         _mm512_load_si512(sums + 16 * i + 8), to);
}

static void product(const nk_dense *d, const nk_block *b, const void *state) {
    const size_t blocks = (size_t)b->outer * b->length;
    const nk_operand *out = d->out;
    for (uint32_t channel = 0; channel < d->outputs; channel += NK_WIDE_LANES) {
        const uint32_t left = d->outputs - channel,
                       channels = left < NK_WIDE_LANES ? left : NK_WIDE_LANES;
        slab l;
        l.d = d, l.b = b, l.weights = d->weights + channel / NK_PACK * d->group_bytes;
        l.two = channels > NK_PACK;
        nk_wide16_of(&l.lanes, state, d->first_out + channel, channels, NK_PACK * blocks);
        for (uint32_t r = 0; r < b->rows; ++r) {
            uint8_t *to = nk_row(out, b->image, b->y + (int32_t)r) + (size_t)b->x * out->pixel +
                          2 * (size_t)(d->first_out + channel);
            for (uint32_t x = 0; x < b->columns; x += CHUNK) {
                const uint8_t *panel = b->panel + r * b->row_step + x * b->step;
                const uint32_t count = b->columns - x < CHUNK ? b->columns - x : CHUNK;
                uint8_t *here = to + (size_t)x * out->pixel;
                if (blocks <= SHORT) short_pixels(&l, panel, count, here);
                else long_pixels(&l, panel, count, here);
            }
        }
    }
}

int nk_conv2d16_avx512(const nk_call *call, const nk_wide_stage *stage) {
    return nk_conv2d16_by(call, stage, product);
}

int nk_fully_connected16_avx512(const nk_call *call, const nk_wide_stage *stage) {
    return nk_fully_connected16_by(call, stage, product);
}

#endif
