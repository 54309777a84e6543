#include "footprint.h"
#include "split.h"

#if ND_THREADS

/* Nanoseconds from which on a call is shared. The smallest take as long as handing a part to a
 * spinning thread; they are shared because each thread's cache then holds rows for the next call.
 */
enum { MIN_NANOSECONDS = 300 };
/* Nanoseconds from which on channels are split at degree ND_SHARE_ROWS: each thread then reads
 * inputs from the other's cache. */
enum { MIN_CHANNEL_NANOSECONDS = 10000 };
/* Most rows of a cascade's stripe: its columns are split, since the rows of the next stripe would
 * come from another thread's cache. */
enum { FEW_ROWS = 4 };
/* Least nanoseconds and rows of a part, and most parts per thread. Smaller parts balance faster and
 * later threads, but each prepares the call's constants again. */
enum { PART_NANOSECONDS = 8000, PART_ROWS = 4, MAX_PARTS_PER_THREAD = 4 };

/* The bytes an operand may reach, as an interval of its region. */
typedef struct {
    uint64_t first, end;
} extent;

static extent extent_of(const nk_operand *o) {
    const uint64_t last = (uint64_t)(o->batch - 1) * o->plane + (uint64_t)(o->ring - 1) * o->pitch +
                          (uint64_t)(o->width - 1) * o->pixel +
                          (uint64_t)o->channels * nd_item_bytes(o->dtype);
    const extent found = {(uintptr_t)o->data, (uintptr_t)o->data + last};
    return found;
}

/* Whether no two rows of any image share bytes. */
static bool rows_apart(const nk_operand *o) {
    const uint64_t row =
        (uint64_t)(o->width - 1) * o->pixel + (uint64_t)o->channels * nd_item_bytes(o->dtype);
    const uint64_t image = (uint64_t)(o->ring - 1) * o->pitch + row;
    return o->pitch >= row && (o->batch == 1 || o->plane >= image);
}

static bool same_elements(const nk_operand *a, const nk_operand *b) {
    return a->data == b->data && a->dtype == b->dtype && a->plane == b->plane &&
           a->pitch == b->pitch && a->pixel == b->pixel && a->ring == b->ring &&
           a->batch == b->batch && a->height == b->height && a->width == b->width &&
           a->channels == b->channels;
}

bool nd_element_wise(uint32_t kernel) {
    return (kernel >= NEUTRON_KERNEL_LUT && kernel <= NEUTRON_KERNEL_SQUARED_DIFFERENCE) ||
           kernel == NEUTRON_KERNEL_ADD16 || kernel == NEUTRON_KERNEL_LUT16;
}

bool nd_rows_independent(const nk_call *call, const nd_kernel_info *info) {
    const nk_operand *out = &call->operands[info->output];
    if (info->dense || info->written != 1u << info->output) return false;
    if ((uint32_t)(call->row1 - call->row0) > out->ring || !rows_apart(out)) return false;
    const extent written = extent_of(out);
    for (uint32_t at = 0; at < call->operand_count; at++) {
        const nk_operand *o = &call->operands[at];
        if (at == info->output || !o->present ||
            (nd_element_wise(call->kernel) && same_elements(o, out)))
            continue;
        const extent read = extent_of(o);
        if (read.first < written.end && written.first < read.end) return false;
    }
    return true;
}

/* Operations per nanosecond of the fastest loops, by kind of call. */
static uint64_t per_nanosecond(const nd_kernel_info *info) {
    switch (info->formula) {
    case NEUTRON_COST_CONV: return 128;
    case NEUTRON_COST_LANE: return 32;
    default: return 16;
    }
}

static uint64_t nanoseconds(const nk_call *call, const nd_kernel_info *info, uint32_t rows) {
    return nd_call_work(call, info, rows) / per_nanosecond(info);
}

typedef enum { ROWS, COLUMNS, CHANNELS } cut;

/* A call that is split into parts by rows, columns or channels. */
typedef struct {
    const nk_call *call;
    nk_kernel kernel;
    uint32_t parts;
    cut cut;
    int32_t results[ND_MAX_PARTS];
    const char *why[ND_MAX_PARTS];
} job;

static void run_one(job *j, uint32_t part, nk_call *mine) {
    j->results[part] = j->kernel(NK_RUN, mine);
    j->why[part] = mine->why;
}

static void run_rows(job *j, uint32_t part) {
    nk_call mine = *j->call;
    const int64_t rows = j->call->row1 - j->call->row0;
    mine.row0 = j->call->row0 + (int32_t)(rows * part / j->parts);
    mine.row1 = j->call->row0 + (int32_t)(rows * (part + 1) / j->parts);
    run_one(j, part, &mine);
}

static void run_columns(job *j, uint32_t part) {
    int32_t params[NEUTRON_MAX_PARAMS];
    nk_call mine;
    const uint64_t width = j->call->operands[NK_CONV2D_OUTPUT].width;
    nd_cut_columns(j->call, (uint32_t)(width * part / j->parts),
                   (uint32_t)(width * (part + 1) / j->parts), params, &mine);
    run_one(j, part, &mine);
}

static void run_channels(job *j, uint32_t part) {
    int32_t table[3 * ND_CUT_CHANNELS];
    nk_call mine;
    nd_cut_channels(j->call, part, j->parts, table, &mine);
    run_one(j, part, &mine);
}

static void run_part(void *argument, uint32_t part) {
    job *j = argument;
    switch (j->cut) {
    case ROWS: run_rows(j, part); break;
    case COLUMNS: run_columns(j, part); break;
    case CHANNELS: run_channels(j, part); break;
    }
}

/* Parts by rows for each thread. */
static uint32_t row_parts_per_thread(const nk_call *call, const nd_kernel_info *info,
                                     uint32_t threads) {
    const uint32_t rows = (uint32_t)(call->row1 - call->row0);
    const uint64_t by_time = nanoseconds(call, info, rows) / PART_NANOSECONDS / threads,
                   by_rows = rows / PART_ROWS / threads;
    const uint64_t found = by_time < by_rows ? by_time : by_rows;
    return found < 1 ? 1 : found > MAX_PARTS_PER_THREAD ? MAX_PARTS_PER_THREAD : (uint32_t)found;
}

/* How to split a call for `threads` threads, and into how many parts; 1: not at all. */
static uint32_t parts_of(const nk_call *call, const nd_kernel_info *info, uint32_t threads,
                         uint32_t degree, cut *how) {
    const uint32_t rows = (uint32_t)(call->row1 - call->row0);
    const bool all = degree == ND_SHARE_ALL, few = rows <= FEW_ROWS,
               whole = rows == call->operands[info->output].height;
    const uint64_t time = nanoseconds(call, info, rows);
    *how = ROWS;
    if (degree == ND_SHARE_NOTHING || time < MIN_NANOSECONDS) return 1;
    *how = CHANNELS;
    if (whole && (all ? rows < FEW_ROWS * threads : few && time >= MIN_CHANNEL_NANOSECONDS) &&
        nd_channels_independent(call, threads))
        return threads;
    *how = COLUMNS;
    if (all && few && nd_columns_independent(call, threads)) return threads;
    *how = ROWS;
    if (few && !all) return 1;
    uint32_t parts = threads * row_parts_per_thread(call, info, threads);
    if (parts > ND_MAX_PARTS) parts = threads;
    return parts < rows ? parts : rows;
}

int32_t nd_run_parallel(nd_pool *pool, uint32_t degree, const nd_kernel_info *info, nk_call *call) {
    const nk_kernel kernel = neutronKernels[call->kernel];
    cut how;
    const uint32_t parts = parts_of(call, info, nd_pool_threads(pool), degree, &how);
    if (parts < 2 || !nd_rows_independent(call, info)) return kernel(NK_RUN, call);
    job j = {call, kernel, parts, how, {0}, {NULL}};
    nd_pool_run(pool, run_part, &j, parts);
    for (uint32_t part = 0; part < parts; part++) {
        if (j.results[part] != 0) {
            call->why = j.why[part];
            return j.results[part];
        }
    }
    return 0;
}

#endif
