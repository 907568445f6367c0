// The text form of initializers, for their dumps().
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

namespace symbind::init {

// ["name", {"key": value}], with the spaces of Python's json.dumps; values are already JSON.
std::string dump(const std::string& name, std::initializer_list<std::pair<const char*, std::string>> arguments = {});

// An integral value is written without a decimal point, as Python writes integers.
std::string number(double value);
std::string real_number(double value);  // always with a decimal point
std::string quoted(const std::string& text);

}  // namespace symbind::init
