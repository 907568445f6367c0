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

}  // namespace symbind
