// Decodes strings that pickles store as lines of text, and bytes stored as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace symbind {

// None of these throws: no value means that the text does not have that form.
std::optional<std::string> unquoted(std::string_view line);      // Python 2's 'a\tb'
std::optional<std::string> unescaped(std::string_view line);     // Latin-1 with \uXXXX and \UXXXXXXXX, as UTF-8
std::optional<std::string> latin1_bytes(std::string_view utf8);  // a byte for each character

}  // namespace symbind
