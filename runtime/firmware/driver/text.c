#include "text.h"

#include <stdarg.h>
#include <stdint.h>

void nd_text_reset(nd_text *out) {
    out->used = 0;
    if (out->size) out->text[0] = 0;
}

#if ND_MESSAGES
static void put(nd_text *out, char c) {
    if (out->used + 1 >= out->size) return;
    out->text[out->used++] = c;
    out->text[out->used] = 0;
}

static void put_text(nd_text *out, const char *text) {
    while (*text) put(out, *text++);
}

static void put_number(nd_text *out, unsigned long long value) {
    char digits[20]; /* 2^64 - 1 has twenty */
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count) put(out, digits[--count]);
}

void nd_text_append(nd_text *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    for (; *format; format++) {
        if (*format != '%') {
            put(out, *format);
        } else if (*++format == 's') {
            put_text(out, va_arg(args, const char *));
        } else if (*format == 'u') {
            put_number(out, va_arg(args, uint32_t));
        } else if (*format == 'd') {
            const long long value = va_arg(args, int32_t);
            if (value < 0) put(out, '-');
            put_number(out, (unsigned long long)(value < 0 ? -value : value));
        } else { /* %llu */
            format += 2;
            put_number(out, va_arg(args, unsigned long long));
        }
    }
    va_end(args);
}
#endif
