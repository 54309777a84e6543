#include "run_context.h"

#if ND_THREADS
#include "split.h"
#endif

/* Operations between two reads of the clock: less than a second of portable loops, on a host and on
 * a microcontroller. Smaller steps would load weights more often. */
#if ND_THREADS
static const uint64_t step_work = UINT64_C(1) << 28;
#else
static const uint64_t step_work = UINT64_C(1) << 24;
#endif

NeutronError nd_check_deadline(nd_run_context *r, uint32_t offset) {
    if (nd_suspended()) return NEUTRON_ERROR_SUSPENDED;
    if (r->deadline == 0 || neutronClockMilliseconds() < r->deadline) return NEUTRON_NONE;
    nd_text_append(&r->model->detail, "byte %u: stopped before this instruction was done", offset);
    return NEUTRON_ERROR_TIMEOUT;
}

/* Called by kernels inside a long row, possibly from several threads. */
static bool in_time(const void *watch) {
    return neutronClockMilliseconds() < ((const nd_run_context *)watch)->deadline;
}

static int32_t run_kernel(nd_run_context *r, const nd_kernel_info *info, nk_call *call) {
#if ND_THREADS
    if (r->pool != NULL) return nd_run_parallel(r->pool, r->degree, info, call);
#endif
    (void)r, (void)info;
    return neutronKernels[call->kernel](NK_RUN, call);
}

NeutronError nd_compute_rows(nd_run_context *r, uint32_t offset, const nd_kernel_info *info,
                             nk_call *call, uint64_t work) {
    const int32_t end = call->row1;
    int32_t step = end - call->row0;
    bool watched = false; /* one step may take long: the kernel itself reads the clock */
    if (r->deadline) {
        const uint64_t rows = step_work / (work + 1) + 1;
        if (rows < (uint64_t)step && !info->dense) step = (int32_t)rows;
        watched = work >= step_work || (info->dense && rows < (uint64_t)step);
    }
    call->keep_running = watched ? in_time : NULL;
    call->watch = r;
    while (call->row0 < end) {
        call->row1 = end - call->row0 > step ? call->row0 + step : end;
        const int32_t result = run_kernel(r, info, call);
        if (result == NEUTRON_ERROR_INDEX) {
            const bool below = call->index < 0;
            const unsigned long long size = (unsigned long long)call->index;
            nd_text_append(&r->model->detail, "byte %u: index %s%llu, where 0 to %d exist", offset,
                           below ? "-" : "", below ? 0 - size : size, (int)(call->limit - 1));
            return NEUTRON_ERROR_INDEX;
        }
        if (result != 0) {
            nd_text_append(&r->model->detail, "byte %u: %s: %s", offset, info->name,
                           call->why ? call->why : "no reason given");
            return NEUTRON_ERROR_KERNEL_FAILED;
        }
        call->row0 = call->row1;
        const NeutronError error =
            call->row0 < end || watched ? nd_check_deadline(r, offset) : NEUTRON_NONE;
        if (error != NEUTRON_NONE) return error;
    }
    return NEUTRON_NONE;
}
