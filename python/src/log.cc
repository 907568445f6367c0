#include "symbind/core/log.h"

#include "bindings.h"
#include "log.h"

namespace symbind::python {
namespace {

thread_local PyObject* current_logger = nullptr;  // held by the scope that set it

void log_to_python(LogLevel level, std::string_view message) {
  AcquireGil acquire;
  const nb::object given = current_logger ? nb::borrow(current_logger) : nb::none();
  const nb::object logger = nb::module_::import_("symbind.log").attr("logger_of")(given);
  logger.attr(level == LogLevel::warning ? "warning" : "info")(nb::str(message.data(), message.size()));
}

}  // namespace

LoggerScope::LoggerScope(nb::handle logger) : logger_(nb::borrow(logger)), previous_(current_logger) {
  if (!logger.is_none()) current_logger = logger_.ptr();
}

LoggerScope::~LoggerScope() { current_logger = previous_; }

void bind_log(nb::module_& m) {
  set_log_sink(&log_to_python);
  // Messages at exit, when logging may be unavailable, go to standard error.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { set_log_sink({}); }));
  m.def(
      "write_log",
      [](const std::string& message, bool warning, nb::handle logger) {
        const LoggerScope scope(logger);
        write_log(warning ? LogLevel::warning : LogLevel::info, message);
      },
      nb::arg("message"), nb::arg("warning") = false, nb::arg("logger").none() = nb::none(),
      "Writes a message as the library itself does.");
}

}  // namespace symbind::python
