#include "access.h"

#if ND_THREADS

#include "footprint.h"
#include "nk_window.h"
#include "split.h"

static uint64_t row_bytes(const nk_operand *o) {
    return (uint64_t)(o->width - 1) * o->pixel + (uint64_t)o->channels * nd_item_bytes(o->dtype);
}

/* Whether the kernel is one whose rows are understood here. */
static bool reads_by_rows(const nd_item *item) {
    nk_window w;
    if (item->info.dense || item->info.written != 1u << item->info.output) return false;
    for (uint32_t operand = 0; operand < item->call.operand_count; operand++)
        if (item->call.operands[operand].present && item->call.operands[operand].batch != 1)
            return false;
    return nd_element_wise(item->record.kernel) || nk_window_of(&item->call, &w);
}

void nd_decode_item(const nd_program *program, uint32_t offset, nd_item *item) {
    item->at = nd_instruction_at(program, offset, item->words);
    item->by_rows = false;
    item->own_rings = 0;
    item->iterations = 1;
    if (item->at.opcode != NEUTRON_OPCODE_CALL) return;
    nd_decode_call(program, NULL, &item->at, &item->call, &item->record);
    (void)nd_kernel(item->record.kernel, &item->info); /* validated */
    for (uint32_t operand = 0; operand < item->at.operands; operand++)
        item->offset[operand] = nd_operand_record(&item->at, operand).offset;
    item->by_rows = reads_by_rows(item);
}

nd_span nd_rows(int64_t first, uint32_t rows, int64_t step, uint32_t height, uint32_t from,
                uint32_t to) {
    const int64_t a = first + from * step, b = first + (to - 1) * step;
    const nd_span all = {nd_larger(nd_smaller(a, b), 0),
                         nd_smaller(nd_larger(a, b) + rows, (int64_t)height)};
    return nd_empty(all) ? (nd_span){0, 0} : all;
}

nd_span nd_call_rows(const nd_item *item, uint32_t iteration) {
    return nd_rows(item->record.first_row, item->record.rows, item->record.row_step,
                   nd_output(item)->height, iteration, iteration + 1);
}

nd_span nd_all_rows(const nd_item *item) {
    return nd_rows(item->record.first_row, item->record.rows, item->record.row_step,
                   nd_output(item)->height, 0, item->iterations);
}

bool nd_rows_follow_output(const nd_item *item, uint32_t operand) {
    nk_window w;
    if (!item->by_rows) return false;
    if (operand == item->info.output) return true;
    if (!(item->info.moved >> operand & 1)) return false;
    if (nd_element_wise(item->record.kernel))
        return item->call.operands[operand].height == nd_output(item)->height;
    return operand == (uint32_t)item->info.input && nk_window_of(&item->call, &w);
}

nd_span nd_rows_accessed(const nd_item *item, uint32_t operand, nd_span out) {
    const int64_t height = item->call.operands[operand].height;
    nk_window w;
    if (!nd_rows_follow_output(item, operand)) return (nd_span){0, height};
    if (operand == item->info.output || !nk_window_of(&item->call, &w)) return out;
    const int64_t reach = (int64_t)(w.kernel_h - 1) * w.dilation_h;
    const int64_t first = out.first * w.stride_h - w.pad_top,
                  end = (out.end - 1) * w.stride_h - w.pad_top + reach + 1;
    return (nd_span){nd_larger(first, 0), nd_smaller(end, height)};
}

/* Other kernels whose check calls nk_inside for input and output, so that they access only the
 * elements that the dimensions name. */
static bool is_image_kernel(uint32_t kernel) {
    switch (kernel) {
    case NEUTRON_KERNEL_CONV2D:
    case NEUTRON_KERNEL_DEPTHWISE_CONV2D:
    case NEUTRON_KERNEL_MAX_POOL2D:
    case NEUTRON_KERNEL_AVG_POOL2D:
    case NEUTRON_KERNEL_FULLY_CONNECTED:
    case NEUTRON_KERNEL_FULLY_CONNECTED16:
    case NEUTRON_KERNEL_REDUCE:
    case NEUTRON_KERNEL_POOL_SUM:
    case NEUTRON_KERNEL_POOL_MEAN:
    case NEUTRON_KERNEL_SOFTMAX:
    case NEUTRON_KERNEL_SOFTMAX16: return true;
    default: return false;
    }
}

/* Whether a call accesses only the elements of an operand's dimensions. Constants, and operands
 * whose dimensions are parameters, may be accessed beyond. */
static bool is_image(const nd_item *item, uint32_t operand) {
    if (item->by_rows) return item->info.moved >> operand & 1;
    return is_image_kernel(item->record.kernel) &&
           (operand == item->info.output || (int32_t)operand == item->info.input);
}

bool nd_only_written(const nd_item *item, uint32_t operand) {
    return operand == item->info.output && item->info.written == 1u << operand &&
           is_image(item, operand);
}

nd_span nd_bytes_of_rows(const nd_item *item, uint32_t operand, nd_span rows) {
    const nk_operand *o = &item->call.operands[operand];
    if (nd_empty(rows)) return (nd_span){0, 0};
    if (!is_image(item, operand)) return (nd_span){item->offset[operand], INT64_MAX};
    const nd_span slots = o->ring == o->height ? rows : (nd_span){0, o->ring};
    const int64_t from = item->offset[operand], pitch = o->pitch;
    if (!item->by_rows)
        return (nd_span){from, from + (int64_t)(o->batch - 1) * o->plane + (o->ring - 1) * pitch +
                                   (int64_t)row_bytes(o)};
    return (nd_span){from + slots.first * pitch,
                     from + (slots.end - 1) * pitch + (int64_t)row_bytes(o)};
}

nd_span nd_all_bytes(const nd_item *item, uint32_t operand) {
    return nd_bytes_of_rows(item, operand, (nd_span){0, item->call.operands[operand].height});
}

bool nd_same_region(const nk_operand *a, const nk_operand *b) {
    return a->present && b->present && a->region == b->region && a->index == b->index;
}

bool nd_same_elements(const nd_item *a, uint32_t x, const nd_item *b, uint32_t y) {
    const nk_operand *p = &a->call.operands[x], *q = &b->call.operands[y];
    return nd_same_region(p, q) && a->offset[x] == b->offset[y] && p->dtype == q->dtype &&
           p->pitch == q->pitch && p->pixel == q->pixel && p->ring == q->ring &&
           p->height == q->height && p->width == q->width && p->channels == q->channels;
}

bool nd_rows_are_disjoint(const nk_operand *o) { return o->pitch >= row_bytes(o); }

bool nd_is_relocatable(const nk_operand *o) {
    return o->pixel == (uint64_t)o->channels * nd_item_bytes(o->dtype) && nd_rows_are_disjoint(o);
}

nd_span nd_bytes_always_written(const nd_item *item) {
    const nk_operand *o = nd_output(item);
    const int64_t step = item->record.row_step;
    const nd_span rows = nd_all_rows(item);
    const bool joined = item->iterations == 1 || (step < 0 ? -step : step) <= item->record.rows;
    /* Other kernels count only as one call for all rows. */
    const bool sure =
        item->by_rows || (nd_only_written(item, item->info.output) && item->iterations == 1 &&
                          o->batch == 1 && rows.first == 0 && rows.end == o->height);
    if (!sure || !joined || o->ring != o->height || !nd_is_relocatable(o) ||
        o->pitch != row_bytes(o))
        return (nd_span){0, 0};
    return nd_bytes_of_rows(item, item->info.output, rows);
}

bool nd_subtract(nd_span bytes, nd_span written, nd_span *left) {
    *left = bytes;
    if (!nd_overlap(bytes, written)) return true;
    if (written.first <= bytes.first) left->first = nd_smaller(written.end, bytes.end);
    else if (written.end >= bytes.end) left->end = written.first;
    else return false;
    return true;
}

bool nd_overlaps_own_input(const nd_item *item, nd_span out, uint32_t cached) {
    const uint32_t output = item->info.output;
    if (nd_empty(out) || cached >> output & 1) return false;
    const nd_span to = nd_bytes_of_rows(item, output, out);
    for (uint32_t x = 0; x < item->call.operand_count; x++) {
        if (x == output || cached >> x & 1) continue;
        if (nd_element_wise(item->record.kernel) && nd_same_elements(item, x, item, output))
            continue;
        if (nd_same_region(&item->call.operands[x], nd_output(item)) &&
            nd_overlap(nd_bytes_of_rows(item, x, nd_rows_accessed(item, x, out)), to))
            return true;
    }
    return false;
}

#endif
