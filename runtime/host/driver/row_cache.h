/* A cache of tensor rows in host memory, used while a script is built (script.h).
 *
 * A call whose output would overlap its own input writes to the cache instead. Later calls read the
 * rows from there. They are written back to scratch only before an instruction that needs them in
 * scratch; bytes that another call overwrites first are never written back. */
#ifndef ND_ROW_CACHE_H
#define ND_ROW_CACHE_H

#include "access.h"

#if ND_THREADS

/* Bytes of the cache, one per thread: they fit a second-level cache of the processor. */
enum { ND_CACHE_BYTES = 262144 };
/* Bytes of the cache of a model that several threads run: whole layers of large networks, so that a
 * call has rows for each thread. */
enum { ND_SHARED_CACHE_BYTES = 2097152 };

enum { ND_MAX_CACHED_OUTPUTS = 8, ND_MAX_RESERVATIONS = 32 };

/* All rows of the output of `item`. */
typedef struct {
    const nd_item *item;
    nd_span range; /* bytes of the cache */
    nd_span dirty; /* bytes of scratch that are not written back */
    bool valid;    /* no other call has overwritten a part of it */
} nd_cached_output;

typedef struct {
    uint32_t capacity, used; /* bytes: the limit, and the most that the script needs */
    uint32_t output_count, reserved_count;
    nd_cached_output outputs[ND_MAX_CACHED_OUTPUTS];
    nd_span reserved[ND_MAX_RESERVATIONS]; /* by the loop that is being planned */
} nd_row_cache;

/* Release what the loop that is being planned has reserved. */
void nd_cache_release_reserved(nd_row_cache *cache);
/* Reserve `rows` rows of an operand at byte `*at`; false where no gap is large enough. */
bool nd_cache_reserve(nd_row_cache *cache, const nk_operand *o, int64_t rows, uint32_t *at);
/* The planned loop is used: count its reservations in `used`. */
void nd_cache_commit(nd_row_cache *cache);
/* Keep a loop layer's output, which starts at byte `at`, for later instructions. The caller checks
 * ND_MAX_CACHED_OUTPUTS. */
void nd_cache_insert(nd_row_cache *cache, const nd_item *item, uint32_t at);
void nd_cache_remove(nd_row_cache *cache, uint32_t index);
/* The cached output that a call can read an operand from, or NULL. */
const nd_cached_output *nd_cache_find(const nd_row_cache *cache, const nd_item *item,
                                      uint32_t operand);
/* Whether a call, over all its iterations, needs dirty bytes of `output` in scratch: it reads them
 * there (with `from_cache`, reads that the cache can serve do not count), or it overwrites a part
 * that is not known exactly. */
bool nd_cache_needs_write_back(const nd_cached_output *output, const nd_item *item,
                               bool from_cache);
/* Record the bytes that a call has written to scratch. */
void nd_cache_note_write(nd_row_cache *cache, const nd_item *item);

#endif
#endif
