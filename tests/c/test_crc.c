#include "check.h"
#include "crc.h"

int main(void) {
    const char digits[] = "123456789"; /* the check value of CRC-32/ISO-HDLC */
    CHECK_EQUAL(nd_crc32(0, digits, 9), 0xCBF43926);
    CHECK_EQUAL(nd_crc32(0, digits, 0), 0);
    CHECK_EQUAL(nd_crc32(nd_crc32(0, digits, 4), digits + 4, 5), 0xCBF43926);
    uint8_t every[256];
    for (int at = 0; at < 256; at++) every[at] = (uint8_t)at;
    CHECK_EQUAL(nd_crc32(0, every, sizeof every), 0x29058C73);
    return check_result();
}
