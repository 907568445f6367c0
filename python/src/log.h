// Where messages go: to Python's logging, or to the logger of whoever is at work.
#pragma once

#include "casters.h"

namespace symbind::python {

// While it lives, messages of this thread go to `logger`: anything with methods info and warning, such as the logging
// module itself. None changes nothing. Made and destroyed with the GIL held.
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
