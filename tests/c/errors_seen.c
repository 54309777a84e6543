/* Whether the tests before have provoked every error of the driver: check.h leaves a file for each.
 */
#include <stdio.h>

#include "neutron_errors.h"

int main(int count, char **arguments) {
    NeutronError error;
    int missing = 0;
    for (uint32_t at = 1; count == 2 && neutronErrorAt(at, &error); at++) { /* row 0 is no error */
        char path[512];
        snprintf(path, sizeof path, "%s/%s", arguments[1], neutronErrorName(error));
        FILE *file = fopen(path, "r");
        if (file != NULL) {
            fclose(file);
            continue;
        }
        fprintf(stderr, "no C test provokes NEUTRON_ERROR_%s\n", neutronErrorName(error));
        missing++;
    }
    return count != 2 || missing > 0;
}
