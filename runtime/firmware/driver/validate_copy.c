#include "footprint.h"
#include "model.h"

static int indexed(uint8_t region) {
    return region == NEUTRON_REGION_INPUT || region == NEUTRON_REGION_OUTPUT;
}

static int writable(uint8_t region) {
    return region == NEUTRON_REGION_OUTPUT || region == NEUTRON_REGION_SCRATCH ||
           region == NEUTRON_REGION_PREFETCH || region == NEUTRON_REGION_TCM ||
           region == NEUTRON_REGION_STATE;
}

static int overlap(const NeutronDmaRecord *d) {
    const uint64_t source = d->source_offset, target = d->target_offset;
    return d->source_region == d->target_region && source < target + d->bytes &&
           target < source + d->bytes;
}

static NeutronError refuse(const nd_instruction *at, NeutronError error, const char *what,
                           uint32_t value, nd_text *detail) {
    nd_text_append(detail, "byte %u: copy: %s %u", at->offset, what, value);
    return error;
}

NeutronError nd_check_copy(const nd_program *program, const nd_instruction *at, uint64_t *work,
                           nd_text *detail) {
    NeutronDmaRecord d;
    nd_body(at, &d, sizeof d);
    if (d.channel >= ND_MAX_CHANNELS)
        return refuse(at, NEUTRON_ERROR_COPY, "channel", d.channel, detail);
    if (d.bytes == 0) return refuse(at, NEUTRON_ERROR_COPY, "length", d.bytes, detail);
    if (!writable(d.target_region)) {
        return refuse(at, NEUTRON_ERROR_WRITE_PROTECTED, "writes region", d.target_region, detail);
    }
    const int both = indexed(d.source_region) && indexed(d.target_region);
    const int neither = !indexed(d.source_region) && !indexed(d.target_region);
    if (both || (neither && d.source_index != 0)) {
        return refuse(at, NEUTRON_ERROR_COPY, "at most one side may be an input or output; index",
                      d.source_index, detail);
    }
    const uint64_t source =
        nd_region_bytes(program, d.source_region, indexed(d.source_region) ? d.source_index : 0);
    const uint64_t target =
        nd_region_bytes(program, d.target_region, indexed(d.target_region) ? d.source_index : 0);
    if (!nd_range_inside(source, d.source_offset, d.bytes) ||
        !nd_range_inside(target, d.target_offset, d.bytes)) {
        nd_text_append(detail,
                       "byte %u: copy: %u bytes from offset %u of %llu to offset %u of %llu",
                       at->offset, d.bytes, d.source_offset, (unsigned long long)source,
                       d.target_offset, (unsigned long long)target);
        return NEUTRON_ERROR_ADDRESS;
    }
    if (overlap(&d))
        return refuse(at, NEUTRON_ERROR_COPY, "source and target overlap; length", d.bytes, detail);
    *work = d.bytes;
    return NEUTRON_NONE;
}

NeutronError nd_check_wait(const nd_instruction *at, nd_text *detail) {
    NeutronWaitRecord wait;
    nd_body(at, &wait, sizeof wait);
    if (wait.channel < ND_MAX_CHANNELS) return NEUTRON_NONE;
    nd_text_append(detail, "byte %u: wait: channel %u", at->offset, wait.channel);
    return NEUTRON_ERROR_COPY;
}
