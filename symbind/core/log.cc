#include "symbind/core/log.h"

#include <iostream>
#include <mutex>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace symbind {
namespace {

std::mutex mutex;
LogSink current_sink;
bool status_shown = false;

constexpr const char* to_line_start = "\r\x1b[K";  // and clear it

// A line that wraps could not be redrawn.
std::string_view cut_to_terminal(std::string_view line) {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return line.substr(0, known ? size_t{size.ws_col} - 1 : 79);
}

}  // namespace

void write_log(LogLevel level, std::string_view raw_message) {
  const std::string message = printable(std::string(raw_message));
  std::unique_lock lock(mutex);
  if (current_sink) {
    const LogSink sink = current_sink;
    lock.unlock();  // a sink may wait for other threads that write
    return sink(level, message);
  }
  std::string line = std::exchange(status_shown, false) ? to_line_start : "";
  line += level == LogLevel::warning ? "WARNING: " : "";
  line += message;
  line += '\n';
  std::cerr << line << std::flush;  // one write: lines of several processes that share a terminal stay whole
}

bool write_status(std::string_view line, bool last) {
  const std::lock_guard lock(mutex);
  if (current_sink || !isatty(STDERR_FILENO)) return false;
  std::cerr << to_line_start << cut_to_terminal(line);
  if (last) std::cerr << '\n';
  std::cerr << std::flush;
  status_shown = !last;
  return true;
}

LogSink set_log_sink(LogSink sink) {
  const std::lock_guard lock(mutex);
  return std::exchange(current_sink, std::move(sink));
}

}  // namespace symbind
