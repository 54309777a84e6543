/* Stands for Zephyr's header. */
#pragma once
#define __nocache __attribute__((section("nocache")))
