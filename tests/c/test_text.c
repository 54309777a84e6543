#include "check.h"
#include "text.h"

int main(void) {
    char room[24];
    nd_text text = {room, sizeof room, 0};
    nd_text_reset(&text);
    CHECK_TEXT(room, "");
    nd_text_append(&text, "%s %u %d", "a", 4294967295u, -2147483647 - 1);
    CHECK_TEXT(room, "a 4294967295 -214748364"); /* 23 characters fit */
    CHECK_EQUAL(text.used, 23);
    nd_text_reset(&text);
    nd_text_append(&text, "%llu.", 18446744073709551615ull);
    CHECK_TEXT(room, "18446744073709551615.");
    nd_text nowhere = {NULL, 0, 0};
    nd_text_reset(&nowhere);
    nd_text_append(&nowhere, "lost %d", 0);
    CHECK_EQUAL(nowhere.used, 0);
    return check_result();
}
