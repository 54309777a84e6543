/* Address arithmetic of operands and copies: footprint.c is its only home; nothing in it can wrap.
 */
#ifndef ND_FOOTPRINT_H
#define ND_FOOTPRINT_H

#include "nk.h"

/* A tensor of more elements exists on no target, and rows and counts stay far inside int32. */
#define ND_MAX_ELEMENTS UINT64_C(0x7FFFFFFF)

/* Bytes of one element; 0 for an unknown type. */
uint32_t nd_item_bytes(uint8_t dtype);
/* 1 when bytes [offset, offset + bytes) lie in a region of that size. */
int nd_range_inside(uint64_t region_bytes, uint32_t offset, uint32_t bytes);
/* 1 when no dimension is zero and the whole logical tensor has at most ND_MAX_ELEMENTS elements. */
int nd_elements_bounded(const NeutronOperandRecord *operand);
/* 1 when every element starts at a multiple of its own size. */
int nd_operand_aligned(const NeutronOperandRecord *operand);

#endif
