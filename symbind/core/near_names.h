// Suggestions for names that were mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace symbind {

// The known names that differ from `name` by few letters, whatever their case; sorted.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known);

// "; did you mean 'a' or 'b'?" if there are similar names, otherwise empty.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);
// The same; without similar names "; there are a, b, …" (the first few).
std::string suggestion(std::string_view name, const std::vector<std::string>& known);

}  // namespace symbind
