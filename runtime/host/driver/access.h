/* Which rows and bytes the calls of a validated program access. This decides whether calls may run
 * in another order, and whether rows may be moved to the cache. */
#ifndef ND_ACCESS_H
#define ND_ACCESS_H

#include "model.h"

#if ND_THREADS

/* Rows of a tensor, or bytes of a region: [first, end). */
typedef struct {
    int64_t first, end;
} nd_span;

/* A decoded instruction of the program. */
typedef struct {
    nd_instruction at;
    uint32_t words[ND_MAX_WORDS];
    /* Of a call: */
    NeutronCallRecord record;
    nd_kernel_info info;
    nk_call call;
    uint32_t offset[NEUTRON_MAX_OPERANDS];
    bool by_rows;       /* one output, one image, and output rows determine the input rows */
    uint32_t own_rings; /* mask of inputs that are rings of the loop, read as the loop wrote them */
    uint32_t iterations; /* of the loop around it; 1 outside of loops */
} nd_item;

static inline bool nd_empty(nd_span a) { return a.first >= a.end; }
static inline bool nd_overlap(nd_span a, nd_span b) { return a.first < b.end && b.first < a.end; }
static inline int64_t nd_smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t nd_larger(int64_t a, int64_t b) { return a > b ? a : b; }

static inline const nk_operand *nd_output(const nd_item *i) {
    return &i->call.operands[i->info.output];
}

/* Decode the instruction at `offset` into `item`. */
void nd_decode_item(const nd_program *program, uint32_t offset, nd_item *item);
/* Output rows of iterations [from, to) of a call that computes `rows` rows from `first` on in the
 * first iteration and moves by `step`. Rows between the iterations are counted too. */
nd_span nd_rows(int64_t first, uint32_t rows, int64_t step, uint32_t height, uint32_t from,
                uint32_t to);
/* Output rows of one iteration of a call, and of all. */
nd_span nd_call_rows(const nd_item *item, uint32_t iteration);
nd_span nd_all_rows(const nd_item *item);
/* Whether the output rows determine which rows of an operand are accessed; otherwise all may be. */
bool nd_rows_follow_output(const nd_item *item, uint32_t operand);
/* Rows of an operand that a call for output rows `out` (not empty) accesses. */
nd_span nd_rows_accessed(const nd_item *item, uint32_t operand, nd_span out);
/* Bytes of the region that these rows of an operand occupy. */
nd_span nd_bytes_of_rows(const nd_item *item, uint32_t operand, nd_span rows);
/* Bytes of the region that a call may access through an operand. */
nd_span nd_all_bytes(const nd_item *item, uint32_t operand);
/* Whether a call writes an operand and does not read it. */
bool nd_only_written(const nd_item *item, uint32_t operand);
bool nd_same_region(const nk_operand *a, const nk_operand *b);
/* Whether two operands are the same elements at the same bytes. */
bool nd_same_elements(const nd_item *a, uint32_t x, const nd_item *b, uint32_t y);
/* Whether no two rows share bytes. */
bool nd_rows_are_disjoint(const nk_operand *o);
/* Whether rows are disjoint and have no gaps between pixels, which may hold other tensors' bytes.
 */
bool nd_is_relocatable(const nk_operand *o);
/* Bytes that a call, over all its iterations, writes without gaps; empty where there are gaps. */
nd_span nd_bytes_always_written(const nd_item *item);
/* Subtract `written` from `bytes`; false, and `*left` is `bytes`, where two ranges would be left.
 */
bool nd_subtract(nd_span bytes, nd_span written, nd_span *left);
/* Whether the output of a call for rows `out` overlaps one of its inputs, other than the same
 * elements of an element-wise kernel. Operands of the mask `cached` are not in their region. */
bool nd_overlaps_own_input(const nd_item *item, nd_span out, uint32_t cached);

#endif
#endif
