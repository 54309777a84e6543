/* Bounded text without stdio: sentences of errors and lines of traces, on bare metal as on a host.
 */
#ifndef ND_TEXT_H
#define ND_TEXT_H

#include <stddef.h>

#include "nd_features.h"

typedef struct {
    char *text;
    size_t size, used; /* `used` leaves out the final zero, which is always there when size > 0 */
} nd_text;

/* The compiler checks formats where uint32_t is unsigned int; on Arm's newlib it is unsigned long,
 * of the same size. */
#if defined(__unix__)
#define ND_FORMAT __attribute__((format(printf, 2, 3)))
#else
#define ND_FORMAT
#endif

/* Make it empty. */
void nd_text_reset(nd_text *out);
/* Append; knows %s, %u and %d of 32 bits, %llu. What does not fit is cut off. */
#if ND_MESSAGES
void nd_text_append(nd_text *out, const char *format, ...) ND_FORMAT;
#else
/* Inline, so that the compiler drops the sentences. */
static inline void nd_text_append(nd_text *out, const char *format, ...) {
    (void)out, (void)format;
}
#endif

#endif
