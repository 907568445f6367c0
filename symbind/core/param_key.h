// A parameter, by number or by name: the key of its gradient in a store, of its state in an optimizer and in files.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <variant>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

class ParamKey {
 public:
  ParamKey(int number) : value_(int64_t{number}) {}
  ParamKey(int64_t number) : value_(number) {}
  ParamKey(size_t number) : value_(static_cast<int64_t>(number)) {}
  ParamKey(const char* name) : value_(std::string(name)) {}
  ParamKey(std::string name) : value_(std::move(name)) {}
  bool is_number() const { return value_.index() == 0; }
  int64_t number() const { return std::get<int64_t>(value_); }
  const std::string& name() const { return std::get<std::string>(value_); }
  std::string str() const { return is_number() ? std::to_string(number()) : name(); }
  friend auto operator<=>(const ParamKey&, const ParamKey&) = default;

 private:
  std::variant<int64_t, std::string> value_;
};

inline std::ostream& operator<<(std::ostream& out, const ParamKey& key) { return out << key.str(); }

}  // namespace symbind
