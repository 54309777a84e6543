#include "footprint.h"

/* Bytes per element, by NEUTRON_DTYPE_*. */
static const uint8_t item_bytes[] = {1, 1, 2, 4, 8, 4, 1};

uint32_t nd_item_bytes(uint8_t dtype) { return dtype < sizeof item_bytes ? item_bytes[dtype] : 0; }

/* Distance from the first to the last of `count` steps; 2^32, more than any region can hold, when
 * it is larger. */
static uint64_t reach(uint32_t count, uint32_t step) {
    const uint64_t distance = (uint64_t)(count - 1) * step;
    return distance > UINT32_MAX ? UINT64_C(1) << 32 : distance;
}

int nk_inside(const nk_operand *o) {
    const uint64_t item = nd_item_bytes(o->dtype);
    if (!o->present || item == 0 || o->batch == 0 || o->height == 0 || o->width == 0 ||
        o->channels == 0)
        return 0;
    if (o->ring == 0 || o->ring > o->height) return 0;
    /* Each part is at most 2^35, so the sum cannot wrap. */
    const uint64_t last =
        reach(o->batch, o->plane) + reach(o->ring, o->pitch) + reach(o->width, o->pixel);
    return last + o->channels * item <= o->available;
}

uint32_t nk_item_bytes(const nk_operand *o) { return nd_item_bytes(o->dtype); }

uint64_t nk_bytes(const nk_operand *o) {
    return (uint64_t)o->batch * o->height * o->width * o->channels * nd_item_bytes(o->dtype);
}

int nk_inside_flat(const nk_operand *o, uint64_t bytes) {
    return o->present && bytes <= o->available;
}

int nk_inside_range(const nk_operand *o, int64_t low, int64_t high) {
    return o->present && low >= 0 && low <= high && (uint64_t)high <= o->available;
}

int nd_range_inside(uint64_t region_bytes, uint32_t offset, uint32_t bytes) {
    return (uint64_t)offset + bytes <= region_bytes;
}

int nd_elements_bounded(const NeutronOperandRecord *o) {
    uint64_t product = 1;
    const uint32_t dims[4] = {o->batch, o->height, o->width, o->channels};
    for (int at = 0; at < 4; at++) {
        product *= dims[at];
        if (product == 0 || product > ND_MAX_ELEMENTS) return 0;
    }
    return 1;
}

int nd_operand_aligned(const NeutronOperandRecord *o) {
    const uint32_t item = nd_item_bytes(o->dtype);
    return item != 0 && o->offset % item == 0 && o->plane % item == 0 && o->pitch % item == 0 &&
           o->pixel % item == 0;
}
