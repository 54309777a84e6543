/* Stands for Zephyr's header. */
#pragma once
#include <stdio.h>
#define printk printf
