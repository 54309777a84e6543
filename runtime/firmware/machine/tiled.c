#include "formulas.h"

nm_cost nm_tiled_cost(const nm_target *target, uint64_t slowdown, uint64_t pixels, uint64_t depth,
                      uint64_t passes, uint64_t weight_bytes, uint64_t stored) {
    const uint64_t tile = target->cost.tile_pixels;
    const uint64_t per_pixel = nm_mul(nm_mul(target->cost.mac, slowdown), depth);
    const uint64_t parts = nm_add(passes, passes == 0);
    const uint64_t load =
        nm_load(target, nm_ceil_div(weight_bytes, parts), nm_ceil_div(stored, parts));
    uint64_t pass = nm_mul(pixels / tile, nm_larger(nm_mul(per_pixel, tile), load));
    if (pixels % tile) pass = nm_add(pass, nm_larger(nm_mul(per_pixel, pixels % tile), load));

    nm_cost cost = {nm_mul(nm_mul(per_pixel, pixels), passes), 0, 0};
    cost.memory = nm_mul(pass, passes) - cost.compute;
    return cost;
}
