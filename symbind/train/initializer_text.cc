#include "symbind/train/initializer_text.h"

#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

namespace symbind::init {

std::string dump(const std::string& name, std::initializer_list<std::pair<const char*, std::string>> arguments) {
  std::string text = "[" + quoted(name) + ", {";
  const char* separator = "";
  for (const auto& [key, value] : arguments) {
    text += separator + quoted(key) + ": " + value;
    separator = ", ";
  }
  return text + "}]";
}

std::string number(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? std::to_string(static_cast<int64_t>(value)) : real_number(value);
}

std::string real_number(double value) { return nlohmann::json(value).dump(); }
std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace symbind::init
