#include "check.h"
#include "neutron_errors.h"

int main(void) {
    NeutronError error = -1, other;
    uint32_t count = 0;
    CHECK(neutronErrorAt(0, &error));
    CHECK_EQUAL(error, NEUTRON_NONE);
    for (; neutronErrorAt(count, &error); count++) {
        const char *sentence = neutronErrorString(error);
        CHECK(sentence != NULL && strlen(sentence) >= 8 && sentence[strlen(sentence) - 1] != '.');
        CHECK(neutronErrorName(error) != NULL);
        for (uint32_t before = 0; before < count; before++) {
            CHECK(neutronErrorAt(before, &other) && other != error);
        }
    }
    CHECK(count > 30);
    CHECK(!neutronErrorAt(count, &error));
    CHECK(!neutronErrorAt(0, NULL));

    CHECK_EQUAL(NEUTRON_COMPONENT(NEUTRON_ERROR_TIMEOUT), NEUTRON_COMPONENT_DRIVER);
    CHECK_EQUAL(NEUTRON_CATEGORY(NEUTRON_ERROR_TIMEOUT), NEUTRON_DRIVER_TIMEOUT);
    CHECK_EQUAL(NEUTRON_CODE(NEUTRON_ERROR_OPERAND), 10);
    CHECK_EQUAL(NEUTRON_COMPONENT(NEUTRON_ERROR_KERNEL_REFUSED), NEUTRON_COMPONENT_FIRMWARE);
    CHECK_TEXT(neutronErrorName(NEUTRON_ERROR_CHECKSUM), "CHECKSUM");
    CHECK(strstr(neutronErrorString(NEUTRON_ERROR_OTHER_CONVERTER),
                 "made by NXP's converter or another one") != NULL);
    CHECK(neutronErrorName(12345678) == NULL);
    CHECK(strstr(neutronErrorString(12345678), "unknown error") != NULL);
    return check_result();
}
