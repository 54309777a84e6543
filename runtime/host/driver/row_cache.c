#include "row_cache.h"

#if ND_THREADS

enum { LINE = 64 };

void nd_cache_release_reserved(nd_row_cache *cache) { cache->reserved_count = 0; }

/* The end of the range that overlaps `bytes` bytes from `at` on; `at` where they are free. */
static int64_t occupied_until(const nd_row_cache *cache, int64_t at, int64_t bytes) {
    const nd_span wanted = {at, at + bytes};
    for (uint32_t i = 0; i < cache->output_count; i++)
        if (nd_overlap(cache->outputs[i].range, wanted)) return cache->outputs[i].range.end;
    for (uint32_t i = 0; i < cache->reserved_count; i++)
        if (nd_overlap(cache->reserved[i], wanted)) return cache->reserved[i].end;
    return at;
}

/* First fit. */
bool nd_cache_reserve(nd_row_cache *cache, const nk_operand *o, int64_t rows, uint32_t *at) {
    const uint64_t bytes = ((uint64_t)rows * o->pitch + LINE - 1) / LINE * LINE;
    int64_t first = 0, end;
    if (cache->reserved_count == ND_MAX_RESERVATIONS || bytes > cache->capacity) return false;
    while ((end = occupied_until(cache, first, (int64_t)bytes)) != first) first = end;
    if (first + (int64_t)bytes > cache->capacity) return false;
    cache->reserved[cache->reserved_count++] = (nd_span){first, first + (int64_t)bytes};
    *at = (uint32_t)first;
    return true;
}

void nd_cache_commit(nd_row_cache *cache) {
    for (uint32_t i = 0; i < cache->reserved_count; i++)
        cache->used = (uint32_t)nd_larger(cache->used, cache->reserved[i].end);
}

void nd_cache_insert(nd_row_cache *cache, const nd_item *item, uint32_t at) {
    const nk_operand *o = nd_output(item);
    const int64_t bytes = ((int64_t)o->height * o->pitch + LINE - 1) / LINE * LINE;
    cache->outputs[cache->output_count++] =
        (nd_cached_output){item, {at, at + bytes}, nd_all_bytes(item, item->info.output), true};
}

void nd_cache_remove(nd_row_cache *cache, uint32_t index) {
    cache->output_count--;
    for (uint32_t i = index; i < cache->output_count; i++)
        cache->outputs[i] = cache->outputs[i + 1];
}

const nd_cached_output *nd_cache_find(const nd_row_cache *cache, const nd_item *item,
                                      uint32_t operand) {
    if (operand == item->info.output || !nd_rows_follow_output(item, operand)) return NULL;
    for (uint32_t i = 0; i < cache->output_count; i++) {
        const nd_cached_output *l = &cache->outputs[i];
        if (l->valid && nd_same_elements(item, operand, l->item, l->item->info.output)) return l;
    }
    return NULL;
}

/* Whether the call writes exactly `bytes`, and at most one dirty range is left over. */
static bool overwrites_exactly(const nd_cached_output *output, const nd_item *item, nd_span bytes) {
    const nd_span written = nd_bytes_always_written(item);
    nd_span left;
    return written.first == bytes.first && written.end == bytes.end &&
           nd_subtract(output->dirty, written, &left);
}

bool nd_cache_needs_write_back(const nd_cached_output *output, const nd_item *item,
                               bool from_cache) {
    const nd_span out = nd_all_rows(item);
    if (nd_empty(out)) return false;
    for (uint32_t x = 0; x < item->call.operand_count; x++) {
        if (!nd_same_region(&item->call.operands[x], nd_output(output->item))) continue;
        const nd_span bytes = nd_bytes_of_rows(item, x, nd_rows_accessed(item, x, out));
        if (!nd_overlap(bytes, output->dirty)) continue;
        const bool fine =
            x == item->info.output
                ? overwrites_exactly(output, item, bytes)
                : from_cache && output->valid && nd_rows_follow_output(item, x) &&
                      nd_same_elements(item, x, output->item, output->item->info.output);
        if (!fine) return true;
    }
    return false;
}

void nd_cache_note_write(nd_row_cache *cache, const nd_item *item) {
    if (nd_empty(nd_all_rows(item))) return;
    const nd_span written = nd_bytes_always_written(item);
    for (uint32_t i = cache->output_count; i-- > 0;) {
        nd_cached_output *l = &cache->outputs[i];
        if (!nd_same_region(nd_output(item), nd_output(l->item)) || !nd_overlap(written, l->dirty))
            continue;
        /* nd_cache_needs_write_back has made sure that one range is left. */
        (void)nd_subtract(l->dirty, written, &l->dirty);
        l->valid = false;
        if (nd_empty(l->dirty)) nd_cache_remove(cache, i);
    }
}

#endif
