// The destination of messages: Python's root logger, or the logger of the active object. No message configures logging.
#pragma once

#include "casters.h"

namespace symbind::python {

// While it lives, messages of this thread go to `logger`: anything with methods info and warning, the logging module
// is the root logger. None changes nothing. Made and destroyed with the GIL held.
class LoggerScope {
 public:
  explicit LoggerScope(nb::handle logger);
  ~LoggerScope();
  LoggerScope(const LoggerScope&) = delete;
  LoggerScope& operator=(const LoggerScope&) = delete;

 private:
  nb::object logger_;
  PyObject* previous_;
};

}  // namespace symbind::python
