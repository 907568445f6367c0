// One way to fail: throw Error with a message made of parts. Messages have the shape
// "[where] rule: actual values", and name the node, the argument and both values.
#pragma once

#include <stdexcept>
#include <string>

#include "symbind/core/text.h"

namespace SYMBIND_API symbind {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Parts>
std::string join(const Parts&... parts) {
  TextStream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(printable(join(parts...)));
}

template <class... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(parts...);
}

// "a, b, c" of anything that can be printed.
template <class Range>
std::string comma_separated(const Range& items) {
  TextStream out;
  const char* separator = "";
  for (const auto& item : items) {
    out << separator << item;
    separator = ", ";
  }
  return out.str();
}

}  // namespace symbind
