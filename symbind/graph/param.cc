#include "symbind/graph/param.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace symbind {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

[[noreturn]] void bad(std::string_view text, std::string_view expected) { fail("'", text, "' is not ", expected); }

// The items of "(a, b)", "[a, b]" or a lone "a".
std::vector<std::string_view> items(std::string_view whole) {
  std::string_view text = trimmed(whole);
  if (!text.empty() && (text.front() == '(' || text.front() == '[')) {
    const char closing = text.front() == '(' ? ')' : ']';
    if (text.back() != closing || text.size() < 2) bad(whole, "a tuple");
    text = text.substr(1, text.size() - 2);
  }
  std::vector<std::string_view> found;
  while (!trimmed(text).empty()) {
    const auto comma = text.find(',');
    const std::string_view item = trimmed(text.substr(0, comma));
    if (item.empty()) bad(whole, "a tuple");
    found.push_back(item);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return found;
}

template <class Range, class Print>
std::string tuple_text(const Range& values, Print print_item) {
  std::string text = "(";
  size_t count = 0;
  for (const auto& value : values) {
    if (count++ > 0) text += ", ";
    text += print_item(value);
  }
  return text + (count == 1 ? ",)" : ")");
}

}  // namespace

void parse(std::string_view text, bool& value) {
  const std::string_view word = trimmed(text);
  if (word == "True" || word == "true" || word == "1")
    value = true;
  else if (word == "False" || word == "false" || word == "0")
    value = false;
  else
    bad(text, "True or False");
}

void parse(std::string_view text, int64_t& value) {
  std::string_view digits = trimmed(text);
  if (!digits.empty() && (digits.back() == 'L' || digits.back() == 'l')) digits.remove_suffix(1);  // Python 2 wrote 1L
  if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size()) return;
  // An integer written as a float, or as True or False.
  if (digits == "True" || digits == "False") {
    value = digits == "True";
    return;
  }
  double real = 0;
  const auto [real_end, real_error] = std::from_chars(digits.data(), digits.data() + digits.size(), real);
  if (digits.empty() || real_error != std::errc() || real_end != digits.data() + digits.size() ||
      !(real >= -0x1p53 && real <= 0x1p53) || real != static_cast<double>(static_cast<int64_t>(real)))
    bad(text, "a whole number");
  value = static_cast<int64_t>(real);
}

void parse(std::string_view text, double& value) {
  std::string_view digits = trimmed(text);
  if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
  if (digits.size() > 1 && (digits.back() == 'L' || digits.back() == 'f')) {
    if (digits != "inf" && digits != "-inf") digits.remove_suffix(1);
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) bad(text, "a number");
}

void parse(std::string_view text, std::string& value) { value = text; }

void parse(std::string_view text, DType& value) {
  // Files hold a name or, in older ones, a number.
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= 0 && number < 100) {
    value = static_cast<DType>(number);
    size_of(value);  // fails when there is no such type
  } else {
    value = dtype_from_name(text);
  }
}

void parse(std::string_view text, Tuple& value) {
  value.clear();
  for (std::string_view item : items(text)) parse(item, value.emplace_back());
}

void parse(std::string_view text, OptionalTuple& value) {
  value.clear();
  for (std::string_view item : items(text)) parse(item, value.emplace_back());
}

void parse(std::string_view text, std::vector<double>& value) {
  value.clear();
  for (std::string_view item : items(text)) parse(item, value.emplace_back());
}

std::string print(bool value) { return value ? "True" : "False"; }
std::string print(int64_t value) { return std::to_string(value); }

std::string print(double value) {
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end};
}

std::string print(const std::string& value) { return value; }
std::string print(DType value) { return std::string(name_of(value)); }

std::string print(const Tuple& value) {
  return tuple_text(value, [](int64_t item) { return print(item); });
}
std::string print(const OptionalTuple& value) {
  return tuple_text(value, [](const std::optional<int64_t>& item) { return print(item); });
}
std::string print(const std::vector<double>& value) {
  return tuple_text(value, [](double item) { return print(item); });
}

// ---- Fields ---------------------------------------------------------------------------------------------------------

namespace {

template <class T>
constexpr std::string_view type_text() {
  if constexpr (std::is_same_v<T, bool>)
    return "boolean";
  else if constexpr (std::is_same_v<T, int64_t>)
    return "int";
  else if constexpr (std::is_same_v<T, double>)
    return "float";
  else if constexpr (std::is_same_v<T, std::string>)
    return "string";
  else if constexpr (std::is_same_v<T, DType>)
    return "type";
  else if constexpr (std::is_same_v<T, Tuple> || std::is_same_v<T, OptionalTuple>)
    return "tuple";
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return "tuple of floats";
  else if constexpr (std::is_same_v<T, std::optional<int64_t>>)
    return "int or None";
  else if constexpr (std::is_same_v<T, std::optional<double>>)
    return "float or None";
  else if constexpr (std::is_same_v<T, std::optional<bool>>)
    return "boolean or None";
  else if constexpr (std::is_same_v<T, std::optional<std::string>>)
    return "string or None";
  else if constexpr (std::is_same_v<T, TupleOrNone>)
    return "tuple or None";
  else if constexpr (std::is_same_v<T, std::optional<DType>>)
    return "type or None";
  else
    static_assert(!is_param_type<T>, "a type without a name");
}

// Values that are invalid for a field of this type although C++ can represent them.
template <class T>
bool is_no_type(const T& value) {
  if constexpr (std::is_same_v<T, DType> || std::is_same_v<T, std::optional<DType>>)
    return value == DType::none;
  else
    return false;
}

template <class T>
T& at(void* params, ptrdiff_t offset) {
  return *reinterpret_cast<T*>(static_cast<std::byte*>(params) + offset);
}
template <class T>
const T& at(const void* params, ptrdiff_t offset) {
  return *reinterpret_cast<const T*>(static_cast<const std::byte*>(params) + offset);
}

}  // namespace

ParamField::ParamField() = default;
ParamField::~ParamField() = default;
ParamField::ParamField(const ParamField&) = default;
ParamField::ParamField(ParamField&&) noexcept = default;
ParamField& ParamField::operator=(const ParamField&) = default;
ParamField& ParamField::operator=(ParamField&&) noexcept = default;

template <class T>
ParamField ParamField::make(ptrdiff_t offset, std::string_view name, std::string_view doc, const T& value,
                            Rule<typename FieldValue<T>::type> rule) {
  using Value = FieldValue<T>;
  ParamField field;
  field.name = name;
  field.doc = doc;
  field.type = type_text<typename Value::type>();
  field.is_required = Value::is_required;
  if (!field.is_required) field.default_text = symbind::print(value);
  field.parse = [offset](void* p, std::string_view text) { symbind::parse(text, at<T>(p, offset)); };
  field.print = [offset](const void* p) { return symbind::print(at<T>(p, offset)); };
  field.given = [offset](const void* p) { return Value::given(at<T>(p, offset)); };
  field.broken_rule = [offset, rule = std::move(rule)](const void* p) -> std::string {
    const auto& now = Value::of(at<T>(p, offset));
    if (is_no_type(now)) return "must be a type";
    return !rule.holds || rule.holds(now) ? "" : rule.text;
  };
  return field;
}

// The types of is_param_type, and those that fields without a default have.
#define SYMBIND_FIELD(...)                                                                                \
  template ParamField ParamField::make(ptrdiff_t, std::string_view, std::string_view, const __VA_ARGS__&, \
                                       Rule<FieldValue<__VA_ARGS__>::type>)
SYMBIND_FIELD(bool);
SYMBIND_FIELD(int64_t);
SYMBIND_FIELD(double);
SYMBIND_FIELD(std::string);
SYMBIND_FIELD(DType);
SYMBIND_FIELD(Tuple);
SYMBIND_FIELD(OptionalTuple);
SYMBIND_FIELD(TupleOrNone);
SYMBIND_FIELD(std::vector<double>);
SYMBIND_FIELD(std::optional<bool>);
SYMBIND_FIELD(std::optional<int64_t>);
SYMBIND_FIELD(std::optional<double>);
SYMBIND_FIELD(std::optional<std::string>);
SYMBIND_FIELD(std::optional<DType>);
SYMBIND_FIELD(Required<bool>);
SYMBIND_FIELD(Required<int64_t>);
SYMBIND_FIELD(Required<double>);
SYMBIND_FIELD(Required<std::string>);
SYMBIND_FIELD(Required<DType>);
SYMBIND_FIELD(Required<Tuple>);
SYMBIND_FIELD(Required<OptionalTuple>);
SYMBIND_FIELD(Required<std::vector<double>>);
#undef SYMBIND_FIELD

}  // namespace symbind
