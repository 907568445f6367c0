// Lists of names: of parameters, data, labels.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace symbind {

inline bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace symbind
