// Lists as Python prints them, so that the output of a program can be held against MXNet's line by line.
#pragma once

#include <string>
#include <vector>

#include "symbind/symbind.h"

inline std::string as_python(const std::vector<std::string>& names) {
  std::string text = "[";
  for (const std::string& name : names) text += (text.size() > 1 ? ", '" : "'") + name + "'";
  return text + "]";
}

inline std::string as_python(const std::vector<symbind::NDArray>& arrays) {
  std::string text = "[";
  for (const symbind::NDArray& array : arrays) {
    if (text.size() > 1) text += ", ";
    text += array ? "\n" + array.str() : "None";
  }
  return text + "]";
}
