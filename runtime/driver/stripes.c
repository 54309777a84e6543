#include "footprint.h"
#include "model.h"

#if ND_THREADS

/* Nanoseconds of calls that are shared, by degree. The smallest take as long as handing a part to
 * a thread that looks for it; they are shared because the next call finds in each cache what that
 * thread made. */
static const uint64_t least_shared[ND_DEGREES] = {
    [ND_SHARE_NOTHING] = UINT64_MAX, [ND_SHARE_LARGE] = 10000, [ND_SHARE_ALL] = 300};
/* Rows of a cascade's stripe: its columns are shared, since the rows of the next one would come
 * from another thread's cache. */
enum { FEW_ROWS = 4 };

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

/* Every row of every image in memory of its own. */
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

/* About how many operations the fastest loops do in a nanosecond, by the kind of a call. */
static uint64_t per_nanosecond(const nd_kernel_info *info) {
    switch (info->formula) {
    case NEUTRON_COST_CONV: return 128;
    case NEUTRON_COST_LANE: return 32;
    default: return 16;
    }
}

bool nd_worth_sharing(const nk_call *call, const nd_kernel_info *info, uint32_t degree) {
    const uint32_t rows = (uint32_t)(call->row1 - call->row0);
    return nd_call_work(call, info, rows) / per_nanosecond(info) >= least_shared[degree];
}

/* One part of a call, over some of its rows or some of its columns. */
typedef struct {
    const nk_call *call;
    nk_kernel kernel;
    uint32_t parts;
    bool columns;
    int32_t results[ND_MAX_THREADS];
    const char *why[ND_MAX_THREADS];
} job;

static void run_rows(job *j, uint32_t part) {
    nk_call mine = *j->call;
    const int64_t rows = j->call->row1 - j->call->row0;
    mine.row0 = j->call->row0 + (int32_t)(rows * part / j->parts);
    mine.row1 = j->call->row0 + (int32_t)(rows * (part + 1) / j->parts);
    j->results[part] = j->kernel(NK_RUN, &mine);
    j->why[part] = mine.why;
}

static void run_columns(job *j, uint32_t part) {
    int32_t params[NEUTRON_MAX_PARAMS];
    nk_call mine;
    const uint64_t width = j->call->operands[NK_CONV2D_OUTPUT].width;
    nd_cut_columns(j->call, (uint32_t)(width * part / j->parts),
                   (uint32_t)(width * (part + 1) / j->parts), params, &mine);
    j->results[part] = j->kernel(NK_RUN, &mine);
    j->why[part] = mine.why;
}

static void run_part(void *argument, uint32_t part) {
    job *j = argument;
    if (j->columns) run_columns(j, part);
    else run_rows(j, part);
}

int32_t nd_run_stripes(nd_pool *pool, const nd_kernel_info *info, nk_call *call) {
    const uint32_t rows = (uint32_t)(call->row1 - call->row0), threads = nd_pool_threads(pool);
    const nk_kernel kernel = neutronKernels[call->kernel];
    const bool columns = rows <= FEW_ROWS && nd_columns_independent(call, threads);
    const uint32_t parts = columns || rows > threads ? threads : rows;
    if (parts < 2 || !nd_rows_independent(call, info)) return kernel(NK_RUN, call);
    job j = {call, kernel, parts, columns, {0}, {NULL}};
    nd_pool_run(pool, run_part, &j, parts);
    for (uint32_t part = 0; part < parts; part++) {
        if (j.results[part] != 0) {
            call->why = j.why[part];
            return j.results[part];
        }
    }
    return 0;
}

static NeutronError set_threads(struct NeutronModel *model, uint32_t threads) {
    if (threads < 1 || threads > ND_MAX_THREADS) return NEUTRON_ERROR_THREADS;
    nd_pool *pool = threads > 1 ? nd_pool_make(threads) : NULL;
    if (threads > 1 && pool == NULL) return NEUTRON_ERROR_NO_THREAD;
    nd_pool_free(model->pool);
    model->pool = pool;
    return NEUTRON_NONE;
}

#else

static NeutronError set_threads(struct NeutronModel *model, uint32_t threads) {
    (void)model;
    return threads == 1 ? NEUTRON_NONE : NEUTRON_ERROR_THREADS;
}

#endif

NeutronError neutronSetThreads(NeutronModelHandle handle, uint32_t threads) {
    struct NeutronModel *model;
    NeutronError error = nd_claim(handle, &model);
    if (error != NEUTRON_NONE) return error;
    error = set_threads(model, threads);
    nd_release(model);
    return error;
}
