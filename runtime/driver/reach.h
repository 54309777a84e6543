/* Which rows and bytes the calls of a validated program touch: what decides whether they may run in
 * another order, or hold their rows elsewhere. */
#ifndef ND_REACH_H
#define ND_REACH_H

#include "model.h"

#if ND_THREADS

/* Rows of a tensor, or bytes of a region. */
typedef struct {
    int64_t first, end;
} nd_span;

/* An instruction of the program. */
typedef struct {
    nd_instruction at;
    uint32_t words[ND_MAX_WORDS];
    /* Of a call: */
    NeutronCallRecord record;
    nd_kernel_info info;
    nk_call call;
    uint32_t offset[NEUTRON_MAX_OPERANDS];
    bool by_rows; /* one output, one image, and the output's rows tell which ones it reads */
    uint32_t own; /* mask of inputs that are rings of the loop, read as the loop wrote them */
    uint32_t iterations; /* of the loop that it is in; 1 outside */
} nd_item;

static inline bool nd_empty(nd_span a) { return a.first >= a.end; }
static inline bool nd_overlap(nd_span a, nd_span b) { return a.first < b.end && b.first < a.end; }
static inline int64_t nd_smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t nd_larger(int64_t a, int64_t b) { return a > b ? a : b; }

static inline const nk_operand *nd_output(const nd_item *i) {
    return &i->call.operands[i->info.output];
}

/* Read the instruction at `offset` into `item`. */
void nd_read_item(const nd_program *program, uint32_t offset, nd_item *item);
/* Output rows of iterations [from, to), of a call that makes `rows` from `first` on in the first
 * one and moves by `step`; not more than `step` of them apart. */
nd_span nd_rows(int64_t first, uint32_t rows, int64_t step, uint32_t height, uint32_t from,
                uint32_t to);
/* Of one iteration of a call, and of all. */
nd_span nd_call_rows(const nd_item *item, uint32_t iteration);
nd_span nd_all_rows(const nd_item *item);
/* Whether an input's rows follow from the output's; else all of them may be read. */
bool nd_follows(const nd_item *item, uint32_t operand);
/* Rows of an operand that a call for output rows `out`, which are not empty, touches. */
nd_span nd_touched(const nd_item *item, uint32_t operand, nd_span out);
/* Bytes of a region that rows of an operand lie in. */
nd_span nd_bytes_of(const nd_item *item, uint32_t operand, nd_span rows);
/* All that a call may touch of an operand. */
nd_span nd_all_bytes(const nd_item *item, uint32_t operand);
/* Whether a call writes an operand and does not read it. */
bool nd_only_written(const nd_item *item, uint32_t operand);
bool nd_same_region(const nk_operand *a, const nk_operand *b);
/* Whether two operands are the same rows of the same bytes. */
bool nd_same_elements(const nd_item *a, uint32_t x, const nd_item *b, uint32_t y);
/* Rows in memory of their own. */
bool nd_rows_apart(const nk_operand *o);
/* The same, without gaps between pixels that somebody else's bytes could be in.
 */
bool nd_may_move(const nk_operand *o);
/* Bytes that a call surely writes, all its iterations together; empty where there are gaps. */
nd_span nd_surely_written(const nd_item *item);
/* What remains of `bytes` when others are written; false where that would be two pieces. */
bool nd_remaining(nd_span bytes, nd_span written, nd_span *left);
/* Whether output and inputs of a call for rows `out` share bytes, which loops must not meet unless
 * they are the same elements. Operands of the mask `held` lie elsewhere. */
bool nd_over_itself(const nd_item *item, nd_span out, uint32_t held);

#endif
#endif
