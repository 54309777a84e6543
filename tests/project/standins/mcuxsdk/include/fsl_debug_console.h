/* Stands for the SDK's console. A program on a board never ends; here it does after the self-test's
 * last line. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline int PUTCHAR(int character) {
    static char line[256];
    static size_t used;
    if (used < sizeof line - 1) line[used++] = (char)character;
    putchar(character);
    if (character != '\n') return character;
    const int ended = strncmp(line, "self-test: ", strlen("self-test: ")) == 0;
    memset(line, 0, sizeof line);
    used = 0;
    if (ended) exit(0);
    return character;
}
