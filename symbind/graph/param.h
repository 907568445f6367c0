// How the fields of an operator's parameter struct are read from text, written as text, and checked.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbind/core/dtype.h"
#include "symbind/core/error.h"
#include "symbind/core/shape.h"

namespace symbind {

using Tuple = std::vector<int64_t>;                         // "(3, 3)"
using OptionalTuple = std::vector<std::optional<int64_t>>;  // "(None, 2)", for slices

// The default of a field that the user must give.
struct Required {
  constexpr operator int64_t() const { return std::numeric_limits<int64_t>::min(); }
  constexpr operator double() const { return std::numeric_limits<double>::quiet_NaN(); }
  operator std::string() const { return std::string(1, '\0'); }
  operator Tuple() const { return {std::numeric_limits<int64_t>::min()}; }
  operator OptionalTuple() const { return {std::numeric_limits<int64_t>::min()}; }
  constexpr operator DType() const { return DType::none; }
};
inline constexpr Required required;

// Text as MXNet writes it into files, for each type a parameter can have.
void parse(std::string_view text, bool& value);
void parse(std::string_view text, int64_t& value);
void parse(std::string_view text, double& value);
void parse(std::string_view text, std::string& value);
void parse(std::string_view text, DType& value);
void parse(std::string_view text, Tuple& value);
void parse(std::string_view text, OptionalTuple& value);
void parse(std::string_view text, std::vector<double>& value);
std::string print(bool value);
std::string print(int64_t value);
std::string print(double value);
std::string print(const std::string& value);
std::string print(DType value);
std::string print(const Tuple& value);
std::string print(const OptionalTuple& value);
std::string print(const std::vector<double>& value);
template <class T>
void parse(std::string_view text, std::optional<T>& value) {
  if (text == "None" || text == "none") {
    value.reset();
  } else {
    T given{};
    parse(text, given);
    value = std::move(given);
  }
}
template <class T>
std::string print(const std::optional<T>& value) {
  return value ? print(*value) : "None";
}

inline bool is_missing(bool) { return false; }
inline bool is_missing(int64_t value) { return value == int64_t{required}; }
inline bool is_missing(double value) { return value != value; }
inline bool is_missing(const std::string& value) { return value == std::string(required); }
inline bool is_missing(DType value) { return value == DType::none; }
inline bool is_missing(const Tuple& value) { return value == Tuple(required); }
inline bool is_missing(const OptionalTuple& value) { return value == OptionalTuple(required); }
inline bool is_missing(const std::vector<double>&) { return false; }
template <class T>
bool is_missing(const std::optional<T>&) {
  return false;
}

// What a field may hold. A check returns the rule that is broken, or nothing.
template <class T>
struct Rule {
  std::function<bool(const T&)> holds;
  std::string text;
};
template <class T>
Rule<T> no_rule() {
  return {};
}
inline auto at_least(int64_t low) {
  return [low](auto type) {
    using T = typename decltype(type)::type;
    return Rule<T>{[low](const T& value) { return value >= static_cast<T>(low); }, join("must be at least ", low)};
  };
}
inline auto between(double low, double high) {
  return [low, high](auto type) {
    using T = typename decltype(type)::type;
    return Rule<T>{
        [low, high](const T& value) { return static_cast<double>(value) >= low && static_cast<double>(value) <= high; },
        join("must lie between ", low, " and ", high)};
  };
}
// Every number of a tuple is at least `low`.
inline auto each_at_least(int64_t low) {
  return [low](auto type) {
    using T = typename decltype(type)::type;
    return Rule<T>{[low](const T& values) {
                     for (int64_t value : values)
                       if (value < low) return false;
                     return true;
                   },
                   join("must hold numbers of at least ", low)};
  };
}
// One of a list of words (for text, and for optional text where None is another choice).
inline auto one_of(std::vector<std::string> words) {
  return [words = std::move(words)](auto type) {
    using T = typename decltype(type)::type;
    std::string listing = "must be one of " + comma_separated(words);
    return Rule<T>{[words](const T& value) {
                     if constexpr (std::is_same_v<T, std::optional<std::string>>) {
                       if (!value) return true;
                       for (const auto& word : words)
                         if (word == *value) return true;
                     } else {
                       for (const auto& word : words)
                         if (word == value) return true;
                     }
                     return false;
                   },
                   std::move(listing)};
  };
}

// One field, with its type erased: `params` points to the operator's parameter struct.
struct ParamField {
  std::string name;
  std::string doc;
  std::string type;          // "int", "float", "boolean", "tuple", "{'avg', 'max'}", …
  std::string default_text;  // empty: required
  bool is_required = false;
  std::function<void(void* params, std::string_view text)> parse;
  std::function<std::string(const void* params)> print;
  std::function<bool(const void* params)> missing;
  std::function<std::string(const void* params)> broken_rule;  // empty when all is well
};

}  // namespace symbind
