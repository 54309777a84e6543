/* Lets Python take the runtime's error sentences, which otherwise only go to standard error, into its exceptions. */
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>

#include <executorch/runtime/platform/platform.h>

namespace {

using executorch::runtime::get_pal_impl;
using executorch::runtime::PalImpl;
using executorch::runtime::register_pal;

thread_local bool capturing = false;
thread_local std::string captured;
pal_emit_log_message_method forward = nullptr;

void emit(
    et_timestamp_t timestamp,
    et_pal_log_level_t level,
    const char* filename,
    const char* function,
    size_t line,
    const char* message,
    size_t length) {
  if (capturing && (level == et_pal_log_level_t::kError || level == et_pal_log_level_t::kFatal)) {
    captured.append(message, length).push_back('\n');
  } else if (forward != nullptr) {
    forward(timestamp, level, filename, function, line, message, length);
  }
}

void install() {
  forward = get_pal_impl()->emit_log_message;
  register_pal(PalImpl::create(emit, __FILE__));
}

} // namespace

#define PUBLIC extern "C" __attribute__((visibility("default")))

/* From here to openneutron_log_end() error lines of this thread are kept instead of printed. */
PUBLIC void openneutron_log_begin(void) {
  static std::once_flag once;
  std::call_once(once, install);
  captured.clear();
  capturing = true;
}

/* The kept lines, each with a newline; valid until this thread's next openneutron_log_begin(). */
PUBLIC const char* openneutron_log_end(void) {
  capturing = false;
  return captured.c_str();
}
