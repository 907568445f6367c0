// How the fields of an operator's parameter struct are read from text, written as text, and checked.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "symbind/core/dtype.h"
#include "symbind/core/error.h"
#include "symbind/core/shape.h"

namespace SYMBIND_API symbind {

// "(3, 3)"; a single number is a tuple of one: .axis = 1.
class Tuple : public std::vector<int64_t> {
 public:
  using std::vector<int64_t>::vector;
  Tuple(std::integral auto only) : std::vector<int64_t>{static_cast<int64_t>(only)} {}
  // A plain vector only: what derives from Tuple (a required field) is copied as a Tuple.
  Tuple(std::same_as<std::vector<int64_t>> auto numbers) : std::vector<int64_t>(std::move(numbers)) {}
};
using OptionalTuple = std::vector<std::optional<int64_t>>;  // "(None, 2)", for slices

// A tuple, or None. Unlike an optional it also takes several numbers in braces: .axis = {0, 1}.
class TupleOrNone : public std::optional<Tuple> {
 public:
  using std::optional<Tuple>::optional;
  TupleOrNone() = default;
  TupleOrNone(std::optional<Tuple> tuple) : std::optional<Tuple>(std::move(tuple)) {}
  TupleOrNone(std::initializer_list<int64_t> numbers) : std::optional<Tuple>(Tuple(numbers)) {}
  // A template, so that it does not compete with std's comparisons of an optional with a value.
  template <std::same_as<TupleOrNone> T>
  friend bool operator==(const T& a, const T& b) {
    return static_cast<const std::optional<Tuple>&>(a) == static_cast<const std::optional<Tuple>&>(b);
  }
};

// A field without a default, which the user must give. It reads as its value; whether it was given is stored
// separately, so no value is reserved. For a number it is a wrapper that converts, for a class it is derived from it.
template <class T>
class Required;

// What a user may write for a Required<T>: what converts to T, except a floating-point value for an integer.
template <class U, class T>
concept GivenAs = std::convertible_to<U, T> && !std::derived_from<std::remove_cvref_t<U>, Required<T>> &&
                  !(std::integral<T> && std::floating_point<std::remove_cvref_t<U>>);

template <class T>
requires(!std::is_class_v<T>) class Required<T> {
 public:
  constexpr Required() = default;
  template <GivenAs<T> U>
  constexpr Required(U value) : value_(static_cast<T>(value)), given_(true) {}
  constexpr operator const T&() const { return value_; }
  constexpr const T& get() const { return value_; }
  constexpr bool given() const { return given_; }

 private:
  T value_{};
  bool given_ = false;
};

template <class T>
requires std::is_class_v<T>
class Required<T> : public T {
 public:
  Required() = default;
  template <GivenAs<T> U>
  Required(U&& value)  // NOLINT(bugprone-forwarding-reference-overload): GivenAs leaves out Required itself
      : T(std::forward<U>(value)), given_(true) {}
  Required(std::initializer_list<typename T::value_type> values) : T(values), given_(true) {}
  // Adding an element counts as giving the field.
  void push_back(typename T::value_type element) {
    T::push_back(std::move(element));
    given_ = true;
  }
  const T& get() const { return *this; }
  bool given() const { return given_; }

 private:
  bool given_ = false;
};

// The type of the value of a field: T for a Required<T>, else the field's own.
template <class T>
struct FieldValue {
  using type = T;
  static constexpr bool is_required = false;
  static const T& of(const T& field) { return field; }
  static bool given(const T&) { return true; }
};
template <class T>
struct FieldValue<Required<T>> {
  using type = T;
  static constexpr bool is_required = true;
  static const T& of(const Required<T>& field) { return field.get(); }
  static bool given(const Required<T>& field) { return field.given(); }
};

// The types that the value of a field can have.
template <class T>
inline constexpr bool is_param_type =
    std::disjunction_v<std::is_same<T, bool>, std::is_same<T, int64_t>, std::is_same<T, double>,
                       std::is_same<T, std::string>, std::is_same<T, DType>, std::is_same<T, Tuple>,
                       std::is_same<T, OptionalTuple>, std::is_same<T, TupleOrNone>,
                       std::is_same<T, std::vector<double>>, std::is_same<T, std::optional<bool>>,
                       std::is_same<T, std::optional<int64_t>>, std::is_same<T, std::optional<double>>,
                       std::is_same<T, std::optional<std::string>>, std::is_same<T, std::optional<DType>>>;

// Text as MXNet writes it into files, for each of these types.
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

template <class T>
void parse(std::string_view text, Required<T>& field) {
  T given{};
  parse(text, given);
  field = std::move(given);
}
template <class T>
std::string print(const Required<T>& field) {
  return print(field.get());
}

// Constraints on the value of a field. A check returns the rule that is broken, or nothing.
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
        join("must be between ", low, " and ", high)};
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

template <size_t count>
auto one_of(const char* const (&words)[count]) {
  return one_of(std::vector<std::string>(words, words + count));
}

// One type-erased field: `params` points to the operator's parameter struct.
struct ParamField {
  std::string name;
  std::string doc;
  std::string type;          // "int", "float", "boolean", "tuple", "{'avg', 'max'}", …
  std::string default_text;  // empty: required
  bool is_required = false;
  std::function<void(void* params, std::string_view text)> parse;
  std::function<std::string(const void* params)> print;
  std::function<bool(const void* params)> given;               // always true where it is not required
  std::function<std::string(const void* params)> broken_rule;  // empty: valid

  // The field at `offset` bytes in a parameter struct. By offset, so that its functions are compiled once for each type
  // of field instead of once for each struct. `value` is the default.
  template <class T>
  static ParamField make(ptrdiff_t offset, std::string_view name, std::string_view doc, const T& value,
                         Rule<typename FieldValue<T>::type> rule);

  // Not inline: they are large, and every file that defines operators would compile them.
  ParamField();
  ~ParamField();
  ParamField(const ParamField&);
  ParamField(ParamField&&) noexcept;
  ParamField& operator=(const ParamField&);
  ParamField& operator=(ParamField&&) noexcept;
};

}  // namespace symbind
