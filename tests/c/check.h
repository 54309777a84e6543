/* Assertions of the C tests: a failed one says where and what, and makes main() return 1. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;

/* An error word that a function returned as expected: where CHECK_SEEN names a folder, its name is
 * written there, so that a test can tell which errors of the driver are provoked at all. */
static inline void check_seen(const char *expected) {
    static const char prefix[] = "NEUTRON_ERROR_";
    const char *folder = getenv("CHECK_SEEN");
    char path[512];
    if (folder == NULL || strncmp(expected, prefix, sizeof prefix - 1) != 0) return;
    snprintf(path, sizeof path, "%s/%s", folder, expected + sizeof prefix - 1);
    FILE *file = fopen(path, "w");
    if (file != NULL) fclose(file);
}

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            check_failures++; \
            fprintf(stderr, "%s:%d: %s is not true\n", __FILE__, __LINE__, #condition); \
        } \
    } while (0)

#define CHECK_EQUAL(found, expected) \
    do { \
        const int64_t found_ = (int64_t)(found), expected_ = (int64_t)(expected); \
        if (found_ != expected_) { \
            check_failures++; \
            fprintf(stderr, "%s:%d: %s is %" PRId64 ", not %" PRId64 "\n", __FILE__, __LINE__, \
                    #found, found_, expected_); \
        } else { \
            check_seen(#expected); \
        } \
    } while (0)

#define CHECK_TEXT(found, expected) \
    do { \
        const char *found_ = (found); \
        if (found_ == NULL || strcmp(found_, (expected)) != 0) { \
            check_failures++; \
            fprintf(stderr, "%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #found, \
                    found_ ? found_ : "(null)", (expected)); \
        } \
    } while (0)

static inline int check_result(void) {
    if (check_failures) fprintf(stderr, "%d checks failed\n", check_failures);
    return check_failures != 0;
}

#endif
