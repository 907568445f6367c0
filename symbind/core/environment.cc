#include "symbind/core/environment.h"

#include <charconv>
#include <cstdlib>
#include <string>

#include "symbind/core/text.h"

namespace symbind::environment {

int Variable::value() const {
  const char* const text = std::getenv(name);
  return meaning(text ? text : "");
}

int Variable::meaning(std::string_view text) const {
  if (text.empty()) return usual;
  const std::string word = lower_case(text);
  if (word == "false" || word == "off" || word == "no") return 0;
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ptr == end && read.ec == std::errc() && number >= 0 && number <= most ? number : 1;
}

std::string TextVariable::value() const {
  const char* const set = std::getenv(name);
  return set ? set : "";
}

}  // namespace symbind::environment
