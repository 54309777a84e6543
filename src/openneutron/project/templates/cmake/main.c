/* Bare metal: the self-test, then how much of the stack it took. The program's status is that of
 * the self-test; start-up hands it to the debugger or to QEMU. */
#include "console.h"
#include "self_test.h"
#include "stack.h"

int main(void) {
    const int failed = self_test();
    put_text("stack: ");
    put_number(stack_used());
    put_text(" of ");
    put_number(stack_size());
    put_text(" bytes used\n");
    return failed;
}
