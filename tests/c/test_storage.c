/* Packed words, coded weights and columns: what the encoder writes is read back, and what nobody
 * would write is refused without touching a byte too many. */
#include "build.h"
#include "storage.h"

int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb,
                                                nk_call *call) = {[KERNEL] = add_one};
const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;

static void words(void) {
    /* 0, 1, -2, 300, 70000: classes 0 1 1 2, then 3 */
    static const uint8_t packed[] = {0x94, 0x01, 0xFE, 0x2C, 0x01, 0x03, 0x70, 0x11, 0x01, 0x00};
    uint32_t found[5], at = 0;
    CHECK(nd_unpack_words(packed, &at, sizeof packed, found, 5));
    CHECK_EQUAL(at, sizeof packed);
    CHECK_EQUAL(found[0], 0);
    CHECK_EQUAL(found[1], 1);
    CHECK_EQUAL((int32_t)found[2], -2);
    CHECK_EQUAL(found[3], 300);
    CHECK_EQUAL(found[4], 70000);
    for (uint32_t end = 0; end < sizeof packed; end++) {
        at = 0;
        CHECK(!nd_unpack_words(packed, &at, end, found, 5));
        CHECK_EQUAL(at, 0);
    }
}

static void wider_words(void) {
    /* The same in more bytes than they need: classes 3 2 3 3, then 3; and a zero of one byte. */
    static const uint8_t packed[] = {0xFB, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00,
                                     0xFE, 0xFF, 0xFF, 0xFF, 0x2C, 0x01, 0x00,
                                     0x00, 0x07, 0x70, 0x11, 0x01, 0x00, 0x00};
    static const int32_t wanted[] = {0, 1, -2, 300, 70000, 0};
    uint32_t found[6], at = 0;
    CHECK(nd_unpack_words(packed, &at, sizeof packed, found, 6));
    CHECK_EQUAL(at, sizeof packed);
    for (uint32_t word = 0; word < 6; word++) CHECK_EQUAL((int32_t)found[word], wanted[word]);
}

static nd_section section_of(uint8_t storage, uint32_t channels, uint32_t taps, uint32_t inputs,
                             uint32_t stored) {
    nd_section s;
    memset(&s, 0, sizeof s);
    s.units = s.length = 2;
    s.record = (NeutronSectionRecord){.storage = storage,
                                      .stored = stored,
                                      .groups = 1,
                                      .channels = channels,
                                      .taps = taps,
                                      .inputs = inputs};
    s.blocks = (channels + 1) / 2;
    s.block_bytes = 2 * taps * ((inputs + 1) / 2 * 2);
    s.record.plain = s.blocks * s.block_bytes;
    return s;
}

static void packed_weights(void) {
    /* Three channels of one input on blocks of 2 x 2: [block][M][N] */
    static const uint8_t stored[] = {1, 2, 3};
    static const uint8_t plain[] = {1, 0, 2, 0, 3, 0, 0, 0};
    const nd_section s = section_of(NEUTRON_STORAGE_PACKED, 3, 1, 1, sizeof stored);
    uint8_t found[8];
    CHECK(nd_decode_weights(&s, stored, 0, 2, found));
    CHECK(memcmp(found, plain, sizeof plain) == 0);
    CHECK(nd_decode_weights(&s, stored, 1, 1, found)); /* the second block alone */
    CHECK(memcmp(found, plain + 4, 4) == 0);
}

static void rice_weights(void) {
    /* k = 1: 0 is '00', -1 is '01', 1 is '100', -2 '101'; two blocks of two weights each */
    static const uint8_t stored[] = {1, 1, 0x10, 0x94};
    static const uint8_t plain[] = {0, 0, 0xFF, 0, 1, 0, 0xFE, 0};
    nd_section s = section_of(NEUTRON_STORAGE_RICE, 4, 1, 1, sizeof stored);
    uint8_t found[8], short_index[] = {1, 9, 0x10, 0x94}, tail[] = {1, 1, 0x11, 0x94};
    s.record.parameter = s.record.width = 1;
    CHECK(nd_decode_weights(&s, stored, 0, 2, found));
    CHECK(memcmp(found, plain, sizeof plain) == 0);
    CHECK(!nd_decode_weights(&s, short_index, 0, 2, NULL)); /* a stream that leaves the section */
    CHECK(!nd_decode_weights(&s, tail, 0, 2, NULL));        /* bits behind the last code */
    s.record.stored = 3;
    CHECK(!nd_decode_weights(&s, stored, 0, 2, NULL));
}

static void static_weights(void) {
    /* Symbols 0, 2 and 3 with lengths 1, 2, 2: '0' a digit of a run, '10' the weight 1, '11' -1.
     * Lengths: 4 symbols, 1111 0001, 1110 (none), 10 (2), 0 (2): 000000100 11110001 1110 10 0. */
    static const uint8_t plain[] = {1, 0, 1, 0xFF, 0, 0xFF, 0, 1};
    /* 1, 0, 1, -1 is '10' '0' '10' '11'; 0, -1, 0, 1 is '0' '11' '0' '10' */
    uint8_t found[8], good[] = {0x02, 0x78, 0xF4, 1, 1, 0x96, 0x68};
    nd_section s = section_of(NEUTRON_STORAGE_STATIC, 4, 1, 2, sizeof good);
    s.record.width = 1;
    CHECK(nd_decode_weights(&s, good, 0, 2, found));
    CHECK(memcmp(found, plain, sizeof plain) == 0);
    good[1] = 0x7F; /* lengths that no prefix code has */
    CHECK(!nd_decode_weights(&s, good, 0, 2, NULL));
}

static void grouped_weights(void) {
    /* The code above; two channels of three inputs, groups of two: four factors 3, 1, 2, 16. */
    static const uint8_t plain[] = {3, 0, 1, 0xFF, 0xFE, 0, 16, 0};
    /* 1, 0, 1, -1 is '10' '0' '10' '11'; -1, 1 is '11' '10' */
    uint8_t found[8], good[] = {0x02, 0x78, 0xF4, 4, 0x20, 0x1F, 0x97, 0xC0};
    nd_section s = section_of(NEUTRON_STORAGE_GROUPS, 2, 1, 3, sizeof good);
    s.record.width = s.record.parameter = 1;
    CHECK(nd_decode_weights(&s, good, 0, 1, found));
    CHECK(memcmp(found, plain, sizeof plain) == 0);
    good[3] = 1; /* a stream that ends inside its factors */
    CHECK(!nd_decode_weights(&s, good, 0, 1, NULL));

    /* One channel of two inputs: one factor 16, and four zeros behind it. */
    uint8_t single[] = {0x02, 0x78, 0xF4, 2, 0xF0, 0xB0};
    s = section_of(NEUTRON_STORAGE_GROUPS, 1, 1, 2, sizeof single);
    s.record.width = s.record.parameter = 1;
    CHECK(nd_decode_weights(&s, single, 0, 1, found));
    CHECK_EQUAL(found[0], 16);
    CHECK_EQUAL(found[1], 0xF0);
    single[4] = 0xF1;
    CHECK(!nd_decode_weights(&s, single, 0, 1, NULL));

    /* Symbol 16 alone, the weight 8: times 15 it is INT8, times 16 not. */
    uint8_t large[] = {0x08, 0xF7, 0x77, 0x77, 0x77, 0x77, 0x77,
                       0x77, 0x77, 0x78, 0x80, 2,    0xE0, 0};
    s = section_of(NEUTRON_STORAGE_GROUPS, 1, 1, 1, sizeof large);
    s.record.width = s.record.parameter = 1;
    CHECK(nd_decode_weights(&s, large, 0, 1, found));
    CHECK_EQUAL(found[0], 120);
    large[sizeof large - 2] = 0xF0;
    CHECK(!nd_decode_weights(&s, large, 0, 1, NULL));
}

static void columns(void) {
    /* One column of four channels, the last one padding: 100, 104, 112 are 4 * (0, 1, 3) above. */
    static const uint8_t stored[] = {100, 0, 0, 0, 2, 2, 0, 0, 0x34};
    nd_section s;
    int32_t found[4];
    memset(&s, 0, sizeof s);
    s.record = (NeutronSectionRecord){.storage = NEUTRON_STORAGE_COLUMNS,
                                      .parameter = 1,
                                      .plain = sizeof found,
                                      .stored = sizeof stored,
                                      .channels = 3};
    CHECK_EQUAL(nd_padded_channels(&s), 4);
    CHECK(nd_decode_columns(&s, stored, 0, 4, (uint8_t *)found));
    CHECK_EQUAL(found[0], 100);
    CHECK_EQUAL(found[1], 104);
    CHECK_EQUAL(found[2], 112);
    CHECK_EQUAL(found[3], 0);
    CHECK(nd_decode_columns(&s, stored, 1, 1, (uint8_t *)found)); /* the second channel alone */
    CHECK_EQUAL(found[0], 104);
    CHECK_EQUAL(found[1], 104);                                   /* as before */
    CHECK(nd_decode_columns(&s, stored, 2, 2, (uint8_t *)found)); /* the third and its padding */
    CHECK_EQUAL(found[0], 112);
    CHECK_EQUAL(found[1], 0);
    s.record.stored = 8;
    CHECK(!nd_decode_columns(&s, stored, 0, 4, NULL));
}

/* Streams of noise, in memory of exactly their size: refused or decoded, never more. */
static void noise(void) {
    uint32_t state = 0x9E3779B9u, good = 0;
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t draw[4];
        for (int at = 0; at < 4; at++) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            draw[at] = state;
        }
        const uint32_t size = 1 + draw[0] % 40;
        static const uint8_t kinds[] = {NEUTRON_STORAGE_PACKED, NEUTRON_STORAGE_RICE,
                                        NEUTRON_STORAGE_STATIC, NEUTRON_STORAGE_GROUPS};
        nd_section s = section_of(kinds[draw[1] % 4], 1 + draw[1] / 4 % 5, 1 + draw[1] / 32 % 3,
                                  1 + draw[1] / 128 % 5, size);
        s.record.width = s.record.storage == NEUTRON_STORAGE_PACKED ? 0 : 1;
        s.record.parameter = draw[2] % 8;
        uint8_t *stored = malloc(size), *plain = malloc(s.record.plain);
        for (uint32_t at = 0; at < size; at++) stored[at] = (uint8_t)(draw[3] >> at % 25);
        if (s.record.width) stored[0] = (uint8_t)(size > 1 ? size - 1 : 0);
        good += nd_decode_weights(&s, stored, 0, s.blocks, plain);
        (void)nd_decode_weights(&s, stored, 0, s.blocks, NULL);
        s.record.storage = NEUTRON_STORAGE_COLUMNS;
        s.record.parameter = 1;
        if (s.record.plain % 4 == 0 && s.record.channels <= s.record.plain / 4)
            (void)nd_decode_columns(&s, stored, 0, nd_padded_channels(&s), plain);
        free(stored);
        free(plain);
    }
    CHECK(good > 0);
}

/* A model whose weights are one section, and what is said of others. */
static NeutronError with_section(uint8_t storage, uint8_t plain, uint8_t stored, uint32_t said) {
    block b;
    char detail[200];
    NeutronModelHandle model = NULL;
    /* Packed words: storage with a width of one byte, plain, stored; groups, channels, taps, inputs
     */
    const uint8_t raw[] = {0x14, plain, stored, 0};
    const uint8_t flat[] = {0x57, storage, 0, 0, 1, plain, stored, 1, 0x15, 1, plain, 1};
    start(&b);
    append_call(&b, image(NEUTRON_REGION_INPUT, 0, 4), image(NEUTRON_REGION_OUTPUT, 0, 4), 0, 4, 0);
    append_head(&b, NEUTRON_OPCODE_END, 0, 0);
    b.header.code_bytes = b.size - CODE_AT;
    b.header.sections_offset = b.size;
    b.header.section_count = 1;
    b.header.plain_bytes = said;
    if (storage == NEUTRON_STORAGE_RAW) append(&b, raw, sizeof raw);
    if (storage != NEUTRON_STORAGE_RAW) append(&b, flat, sizeof flat);
    b.size = (b.size + 15) / 16 * 16;
    b.header.microcode_bytes = b.sizes.microcode = b.size;
    b.header.call_count = b.header.layout[4] = 1;
    seal(&b);
    const NeutronError error = verdict(&b, detail, sizeof detail);
    const NeutronModelConfig config = config_of(&b);
    CHECK_EQUAL(neutronModelPrepareChecked(&config, &b.sizes, &model), error);
    CHECK(error == NEUTRON_NONE || detail[0] != 0);
    if (model != NULL) CHECK_EQUAL(neutronModelUnprepare(model), NEUTRON_NONE);
    return error;
}

static void sections(void) {
    CHECK_EQUAL(with_section(NEUTRON_STORAGE_RAW, 16, 16, 16), NEUTRON_NONE);
    CHECK_EQUAL(with_section(NEUTRON_STORAGE_RAW, 16, 15, 16), NEUTRON_ERROR_SECTION_TABLE);
    CHECK_EQUAL(with_section(NEUTRON_STORAGE_RAW, 16, 16, 32), NEUTRON_ERROR_SECTION_TABLE);
    CHECK_EQUAL(with_section(NEUTRON_STORAGE_RAW, 100, 100, 112), NEUTRON_ERROR_SECTION_TABLE);
    CHECK_EQUAL(with_section(9, 16, 16, 16), NEUTRON_ERROR_SECTION_TABLE);
    CHECK_EQUAL(with_section(NEUTRON_STORAGE_RICE, 16, 16, 16), NEUTRON_ERROR_WEIGHTS_CODE);
    CHECK_EQUAL(with_section(NEUTRON_STORAGE_STATIC, 16, 16, 16), NEUTRON_ERROR_WEIGHTS_CODE);
}

int main(void) {
    words();
    wider_words();
    packed_weights();
    rice_weights();
    static_weights();
    grouped_weights();
    columns();
    noise();
    sections();
    return check_result();
}
