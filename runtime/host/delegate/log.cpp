/* Captures ExecuTorch's error messages, which otherwise go to standard error only, for Python
 * exceptions. */
#include <cstddef>
#include <mutex>
#include <string>

#include <executorch/runtime/platform/platform.h>

namespace {

using executorch::runtime::get_pal_impl;
using executorch::runtime::PalImpl;

thread_local bool capturing = false;
thread_local std::string captured;
pal_emit_log_message_method forward = nullptr;

/* Replace bytes outside ASCII: a damaged program logs damaged names, and the wheel's printer ends
 * the process on bytes that are not UTF-8. */
std::string readable(const char *message, size_t length) {
    std::string text(message, length);
    for (char &byte : text) {
        if (static_cast<unsigned char>(byte) >= 0x80) {
            byte = '?';
        }
    }
    return text;
}

void emit(et_timestamp_t timestamp, et_pal_log_level_t level, const char *filename,
          const char *function, size_t line, const char *message, size_t length) {
    if (capturing) {
        if (level == et_pal_log_level_t::kError || level == et_pal_log_level_t::kFatal) {
            captured.append(message, length).push_back('\n');
        }
    } else if (forward != nullptr) {
        const std::string text = readable(message, length);
        forward(timestamp, level, filename, function, line, text.c_str(), text.size());
    }
}

/* Set the log function in the runtime's platform table. register_pal() would do the same, and also
 * print a remark on standard output, where programs print their results. */
void install() {
    PalImpl *table = const_cast<PalImpl *>(get_pal_impl());
    forward = table->emit_log_message;
    table->emit_log_message = emit;
}

} // namespace

#define PUBLIC extern "C" __attribute__((visibility("default")))

/* Start capturing this thread's log: errors are kept, other messages dropped. */
PUBLIC void openneutron_log_begin(void) {
    static std::once_flag once;
    std::call_once(once, install);
    captured.clear();
    capturing = true;
}

/* Stop capturing and return the error lines, each with a newline; valid until this thread's next
 * openneutron_log_begin(). */
PUBLIC const char *openneutron_log_end(void) {
    capturing = false;
    return captured.c_str();
}
