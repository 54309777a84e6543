#include "npu_compare.h"

#include "console.h"

/* The first byte in which they differ, or `bytes`. */
static uint32_t first_difference(const uint8_t *found, const uint8_t *expected, uint32_t bytes) {
    uint32_t at = 0;
    while (at < bytes && found[at] == expected[at]) at++;
    return at;
}

int npu_compare(uint32_t sample, uint32_t output, const uint8_t *found, const uint8_t *exact,
                const uint8_t *silicon, uint32_t bytes) {
    const uint32_t at = first_difference(found, exact, bytes);
    put_text("sample ");
    put_number(sample);
    put_text(": output ");
    put_number(output);
    if (at == bytes) {
        put_text(" equals LiteRT's exact values\n");
        return 0;
    }
    if (first_difference(found, silicon, bytes) == bytes) {
        put_text(" equals the values of silicon's rounding\n");
        return 0;
    }
    put_text(" differs from byte ");
    put_number(at);
    put_text(" on: ");
    put_number(found[at]);
    put_text(" instead of ");
    put_number(exact[at]);
    put_text(", or ");
    put_number(silicon[at]);
    put_text(" by silicon's rounding\n");
    return 1;
}

int npu_verdict(uint32_t samples, uint32_t failed) {
    put_number(samples - failed);
    put_text(" of ");
    put_number(samples);
    put_text(" samples as expected\n");
    put_text(failed ? "self-test: fail\n" : "self-test: pass\n");
    return failed != 0;
}
