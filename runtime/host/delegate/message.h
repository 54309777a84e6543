/* Error reports of the delegate: one sentence in ExecuTorch's log, with a prefix by which the
 * Python side finds it, and an error code. */
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/log.h>

#define ON_LOG(format, ...) ET_LOG(Error, "NeutronBackend: " format, ##__VA_ARGS__)

#define ON_REQUIRE(condition, code, format, ...) \
    do { \
        if (!(condition)) { \
            ON_LOG(format, ##__VA_ARGS__); \
            return ::executorch::runtime::Error::code; \
        } \
    } while (0)

#define ON_TRY(expression) \
    do { \
        const ::executorch::runtime::Error error = (expression); \
        if (error != ::executorch::runtime::Error::Ok) { \
            return error; \
        } \
    } while (0)
