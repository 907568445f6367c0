// Text that does not depend on the program's locale, neither std::locale::global nor setlocale: numbers are written
// with a point and without groups, and letters are ASCII's. Everything that writes or reads numbers goes through here
// or through std::to_chars and std::from_chars.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

class TextStream : public std::ostringstream {
 public:
  TextStream();
  ~TextStream() override;  // not inline: almost every file writes messages
};

// As printf's "%.*f" and "%.*e" write it in the C locale.
std::string fixed_text(double value, int decimals);
std::string scientific_text(double value, int decimals);

std::string lower_case(std::string_view text);

// For messages, which are C strings and become Python's: NUL and bytes that are not UTF-8 are written as \x00.
std::string printable(std::string text);

}  // namespace symbind
