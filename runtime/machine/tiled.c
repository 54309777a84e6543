#include "formulas.h"

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

nm_cost nm_tiled_cost(const nm_target *target, uint64_t slowdown, uint64_t pixels, uint64_t depth,
                      uint64_t passes, uint64_t weight_bytes) {
    const uint64_t tile = target->cost.tile_pixels;
    const uint64_t per_pixel = nm_mul(nm_mul(target->cost.mac, slowdown), depth);
    const uint64_t load =
        nm_mul(target->cost.weight_byte, nm_ceil_div(weight_bytes, nm_add(passes, passes == 0)));
    uint64_t pass = nm_mul(pixels / tile, larger(nm_mul(per_pixel, tile), load));
    if (pixels % tile) pass = nm_add(pass, larger(nm_mul(per_pixel, pixels % tile), load));

    nm_cost cost = {nm_mul(nm_mul(per_pixel, pixels), passes), 0, 0};
    cost.memory = nm_mul(pass, passes) - cost.compute;
    return cost;
}
