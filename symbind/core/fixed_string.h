// Text as a template argument: Unary<"relu"> and Unary<"tanh"> are different types.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

template <size_t length>
struct FixedString {
  char text[length]{};
  consteval FixedString(const char (&literal)[length]) { std::copy_n(literal, length, text); }
  constexpr std::string_view view() const { return {text, length - 1}; }
};

}  // namespace symbind
