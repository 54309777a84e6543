#include "console.h"

#include <zephyr/sys/printk.h>

void put_text(const char *text) { printk("%s", text); }

void put_number(uint64_t value) { printk("%llu", (unsigned long long)value); }
