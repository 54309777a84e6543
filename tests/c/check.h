/* Assertions of the C tests: a failed one says where and what, and makes main() return 1. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int check_failures;

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
