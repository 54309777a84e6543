#include "check.h"
#include "footprint.h"

static nk_operand whole(void) {
    const nk_operand o = {.plane = 96,
                          .pitch = 24,
                          .pixel = 6,
                          .ring = 4,
                          .batch = 2,
                          .height = 4,
                          .width = 4,
                          .channels = 6,
                          .dtype = NEUTRON_DTYPE_INT8,
                          .present = 1,
                          .available = 192};
    return o;
}

static void exact_fit_is_inside(void) {
    nk_operand o = whole();
    CHECK(nk_inside(&o));
    o.available--;
    CHECK(!nk_inside(&o));
}

static void last_row_needs_no_pitch(void) {
    nk_operand o = whole();
    o.batch = 1, o.pitch = 100, o.available = 3 * 100 + 24;
    CHECK(nk_inside(&o));
    o.available--;
    CHECK(!nk_inside(&o));
}

static void rings_count_their_rows_only(void) {
    nk_operand o = whole();
    o.batch = 1, o.ring = 2, o.height = 1000000, o.available = 48;
    CHECK(nk_inside(&o));
    o.ring = 3;
    CHECK(!nk_inside(&o));
}

static void ring_is_between_one_and_height(void) {
    nk_operand o = whole();
    o.ring = 0;
    CHECK(!nk_inside(&o));
    o.ring = 5, o.available = UINT32_MAX;
    CHECK(!nk_inside(&o));
}

static void empty_dimensions_are_refused(void) {
    for (int field = 0; field < 4; field++) {
        nk_operand o = whole();
        uint32_t *dims[] = {&o.batch, &o.height, &o.width, &o.channels};
        *dims[field] = 0;
        CHECK(!nk_inside(&o));
    }
}

static void wide_types_count_their_bytes(void) {
    nk_operand o = whole();
    o.dtype = NEUTRON_DTYPE_INT32;
    CHECK(!nk_inside(&o));
    o.available = 192 - 6 + 24;
    CHECK(nk_inside(&o));
    o.dtype = 200;
    CHECK(!nk_inside(&o));
}

static void nothing_wraps(void) {
    const uint32_t huge[] = {1, 2, 0x10000, 0x80000000u, UINT32_MAX};
    for (int a = 0; a < 5; a++) {
        for (int b = 0; b < 5; b++) {
            for (int f = 0; f < 4; f++) {
                nk_operand o = whole();
                uint32_t *counts[] = {&o.batch, &o.ring, &o.width, &o.channels};
                uint32_t *steps[] = {&o.plane, &o.pitch, &o.pixel, &o.channels};
                o.height = UINT32_MAX;
                *counts[f] = huge[a];
                *steps[f] = huge[b];
                const unsigned __int128 last = (unsigned __int128)(o.batch - 1) * o.plane +
                                               (unsigned __int128)(o.ring - 1) * o.pitch +
                                               (unsigned __int128)(o.width - 1) * o.pixel +
                                               o.channels;
                for (int s = 0; s < 5; s++) {
                    o.available = huge[s];
                    CHECK_EQUAL(nk_inside(&o), last <= o.available);
                }
            }
        }
    }
}

static void flat_and_range(void) {
    nk_operand o = whole();
    CHECK(nk_inside_flat(&o, 192));
    CHECK(!nk_inside_flat(&o, 193));
    CHECK(!nk_inside_flat(&o, UINT64_MAX));
    CHECK(nk_inside_range(&o, 0, 192));
    CHECK(!nk_inside_range(&o, -1, 10));
    CHECK(!nk_inside_range(&o, 10, 193));
    CHECK(!nk_inside_range(&o, 10, 9));
    CHECK(!nk_inside_range(&o, INT64_MIN, INT64_MAX));
    o.present = 0;
    CHECK(!nk_inside(&o));
    CHECK(!nk_inside_flat(&o, 0));
    CHECK(!nk_inside_range(&o, 0, 0));
}

static void records(void) {
    NeutronOperandRecord o = {.dtype = NEUTRON_DTYPE_INT32,
                              .offset = 4,
                              .plane = 8,
                              .pitch = 4,
                              .pixel = 0,
                              .ring = 1,
                              .batch = 1,
                              .height = 1,
                              .width = 1,
                              .channels = 1};
    CHECK(nd_operand_aligned(&o));
    o.offset = 6;
    CHECK(!nd_operand_aligned(&o));
    o.batch = 0x8000, o.height = 0x10000;
    CHECK(!nd_elements_bounded(&o));
    o.height = 0xFFFF;
    CHECK(nd_elements_bounded(&o));
    o.batch = o.height = o.width = o.channels = UINT32_MAX;
    CHECK(!nd_elements_bounded(&o));
    CHECK(nd_range_inside(10, 4, 6));
    CHECK(!nd_range_inside(10, UINT32_MAX, UINT32_MAX));
}

int main(void) {
    exact_fit_is_inside();
    last_row_needs_no_pitch();
    rings_count_their_rows_only();
    ring_is_between_one_and_height();
    empty_dimensions_are_refused();
    wide_types_count_their_bytes();
    nothing_wraps();
    flat_and_range();
    records();
    return check_result();
}
