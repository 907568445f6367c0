// How initializers are written, for those that write themselves.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

namespace symbind::init {

// ["name", {"key": value}], with the blanks of Python's writer; values are JSON already.
std::string dump(const std::string& name, std::initializer_list<std::pair<const char*, std::string>> arguments = {});

// A whole number is written without a fraction, as Python writes the numbers users give.
std::string number(double value);
std::string real_number(double value);  // always with one
std::string quoted(const std::string& text);

}  // namespace symbind::init
