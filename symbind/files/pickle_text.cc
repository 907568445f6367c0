#include "symbind/files/pickle_text.h"

#include <charconv>
#include <cstdint>

namespace symbind {
namespace {

// Exactly so many hexadecimal digits at the beginning.
std::optional<uint32_t> hex(std::string_view text, size_t digits) {
  uint32_t number = 0;
  if (text.size() < digits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number, 16);
  if (error != std::errc() || end != text.data() + digits) return std::nullopt;
  return number;
}

void append_utf8(std::string& text, uint32_t code) {
  const auto more = [&](int shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    more(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | (code >> 12));
    more(6), more(0);
  } else {
    text += static_cast<char>(0xf0 | ((code >> 18) & 7));
    more(12), more(6), more(0);
  }
}

}  // namespace

std::optional<std::string> unquoted(std::string_view line) {
  if (line.size() < 2 || line.front() != line.back() || (line.front() != '\'' && line.front() != '"'))
    return std::nullopt;
  line = line.substr(1, line.size() - 2);
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      text += line[i];
      continue;
    }
    if (++i == line.size()) return std::nullopt;
    if (line[i] == 'x') {
      const auto byte = hex(line.substr(i + 1), 2);
      if (!byte) return std::nullopt;
      text += static_cast<char>(*byte);
      i += 2;
      continue;
    }
    constexpr std::string_view codes = "nrt\\'\"", meanings = "\n\r\t\\'\"";
    const size_t found = codes.find(line[i]);
    if (found == std::string_view::npos) return std::nullopt;
    text += meanings[found];
  }
  return text;
}

std::optional<std::string> unescaped(std::string_view line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size() || (line[i + 1] != 'u' && line[i + 1] != 'U')) {
      append_utf8(text, static_cast<uint8_t>(line[i]));
      continue;
    }
    const size_t digits = line[i + 1] == 'u' ? 4 : 8;
    const auto code = hex(line.substr(i + 2), digits);
    if (!code || *code > 0x10ffff) return std::nullopt;
    append_utf8(text, *code);
    i += 1 + digits;
  }
  return text;
}

std::optional<std::string> latin1_bytes(std::string_view utf8) {
  std::string raw;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto first = static_cast<uint8_t>(utf8[i]);
    if (first < 0x80) {
      raw += static_cast<char>(first);
      continue;
    }
    const uint8_t second = i + 1 < utf8.size() ? static_cast<uint8_t>(utf8[i + 1]) : 0;
    if ((first != 0xc2 && first != 0xc3) || (second & 0xc0) != 0x80) return std::nullopt;
    raw += static_cast<char>(((first & 3) << 6) | (second & 0x3f));
    ++i;
  }
  return raw;
}

}  // namespace symbind
