#include "symbind/core/text.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <locale>

namespace symbind {

TextStream::TextStream() { imbue(std::locale::classic()); }
TextStream::~TextStream() = default;

namespace {

std::string number_text(double value, std::chars_format format, int decimals) {
  std::array<char, 512> text;  // a double has up to 309 digits before the point
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value, format, decimals);
  return error == std::errc() ? std::string(text.data(), end) : "?";
}

// The length of the UTF-8 sequence that begins at a byte; 0 for invalid bytes, which include overlong forms, surrogates
// and code points beyond Unicode's range.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return first == 0 ? 0 : 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

std::string fixed_text(double value, int decimals) { return number_text(value, std::chars_format::fixed, decimals); }
std::string scientific_text(double value, int decimals) {
  return number_text(value, std::chars_format::scientific, decimals);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return lower;
}

std::string printable(std::string text) {
  size_t whole = 0;  // bytes copied unchanged
  while (whole < text.size()) {
    const size_t length = utf8_length(std::string_view(text).substr(whole));
    if (length == 0) break;
    whole += length;
  }
  if (whole == text.size()) return text;
  std::string result = text.substr(0, whole);
  for (std::string_view rest = std::string_view(text).substr(whole); !rest.empty();) {
    const size_t length = utf8_length(rest);
    if (length == 0) {
      const auto byte = static_cast<uint8_t>(rest[0]);
      result += "\\x";
      result += "0123456789abcdef"[byte >> 4];
      result += "0123456789abcdef"[byte & 15];
    }
    result += rest.substr(0, length);
    rest.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace symbind
