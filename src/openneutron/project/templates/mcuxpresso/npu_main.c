/* NXP's Neutron library on the NPU: the self-test once. */
#include "board_init.h"
#include "npu_test.h"

int main(void) {
    BOARD_Init();
    npu_test();
    for (;;) {}
}
