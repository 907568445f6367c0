// Messages to the person at the terminal. By default they go to standard error; a program may redirect them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "symbind/core/error.h"

namespace SYMBIND_API symbind {

enum class LogLevel { info, warning };

// Writes "Epoch[0] …" lines, or passes them to the sink that was set. Safe from any thread.
void write_log(LogLevel level, std::string_view message);

using LogSink = std::function<void(LogLevel level, std::string_view message)>;
// From now on every message goes to `sink`, which may be called by several threads concurrently and may write messages
// itself; an empty one restores standard error. Returns the previous sink.
LogSink set_log_sink(LogSink sink);

// Shows a line below the messages, instead of the one shown before: for progress bars. Works only where messages go to
// a terminal; elsewhere it does nothing and returns false. A line with `last` stays on the terminal.
bool write_status(std::string_view line, bool last = false);

template <class... Parts>
void log_info(const Parts&... parts) {
  write_log(LogLevel::info, join(parts...));
}
template <class... Parts>
void log_warning(const Parts&... parts) {
  write_log(LogLevel::warning, join(parts...));
}

}  // namespace symbind
