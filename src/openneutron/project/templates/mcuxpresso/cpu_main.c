/* The open runtime on the CPU core: the self-test once. */
#include "app.h"
#include "board.h"
#include "self_test.h"

int main(void) {
    BOARD_InitHardware();
    self_test();
    for (;;) {}
}
