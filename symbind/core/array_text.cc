// NumPy's rules: a float is written with the fewest digits that tell it from its neighbours, at most eight after the
// point; all elements get one width; numbers of very different size are written with an exponent; lines end at 75
// characters; above a thousand elements, only three at each end of each axis are shown.
#include "symbind/core/array_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/core/text.h"

namespace symbind {
namespace {

constexpr int64_t most_elements = 1000;
constexpr int64_t edge_items = 3;
constexpr size_t line_width = 75;
constexpr size_t precision = 8;

// The digits of a float in scientific form, d.ddde±x: the fewest that round-trip in its own type.
std::string shortest(double value, DType dtype) {
  char text[64];
  const auto print = [&text](auto number, auto... digits) {
    return std::string(text,
                       std::to_chars(text, text + sizeof text, number, std::chars_format::scientific, digits...).ptr);
  };
  if (dtype == DType::float64) return print(value);
  if (dtype == DType::float32) return print(static_cast<float>(value));
  for (int digits = 0;; ++digits) {
    std::string candidate = print(value, digits);
    double back = 0;
    std::from_chars(candidate.data(), candidate.data() + candidate.size(), back);
    const bool same = dtype == DType::float16 ? float16(back).bits == float16(value).bits
                                              : bfloat16(back).bits == bfloat16(value).bits;
    if (same || digits == std::numeric_limits<float>::max_digits10) return candidate;
  }
}

struct Digits {
  std::string whole, fraction;  // with the sign before the whole part
  std::string exponent;         // "e-05", only in scientific form
};

std::string without_trailing_zeros(std::string digits) {
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits;
}

Digits split(std::string_view text) {
  const size_t e = std::min(text.find('e'), text.size()), point = std::min(text.find('.'), e);
  return {std::string(text.substr(0, point)), point < e ? std::string(text.substr(point + 1, e - point - 1)) : "",
          std::string(text.substr(e))};
}

Digits positional(double value, DType dtype) {
  const Digits digits = split(shortest(value, dtype));
  const int exponent = std::stoi(digits.exponent.substr(1));
  const int decimals = std::clamp(static_cast<int>(digits.fraction.size()) - exponent, 0, static_cast<int>(precision));
  Digits result = split(fixed_text(value, decimals));
  result.fraction = without_trailing_zeros(result.fraction);
  // Digits beyond the precision of the type are noise: 16777216 times ten is written with zeros.
  if (static_cast<int>(digits.fraction.size()) < exponent) {
    const bool negative = value < 0;
    std::string whole = digits.whole.substr(negative) + digits.fraction;
    whole.append(static_cast<size_t>(exponent) + 1 - whole.size(), '0');
    result.whole = (negative ? "-" : "") + whole;
  }
  return result;
}

Digits scientific(double value, DType dtype) {
  Digits digits = split(shortest(value, dtype));
  if (digits.fraction.size() > precision) digits = split(scientific_text(value, static_cast<int>(precision)));
  digits.fraction = without_trailing_zeros(digits.fraction);
  return digits;
}

std::string left_padded(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::vector<std::string> float_words(std::span<const double> values, DType dtype) {
  double largest = 0, smallest = std::numeric_limits<double>::infinity();
  for (const double value : values)
    if (std::isfinite(value) && value != 0) {
      largest = std::max(largest, std::abs(value));
      smallest = std::min(smallest, std::abs(value));
    }
  const bool with_exponent = largest != 0 && (largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000);

  size_t left = 0, right = 0, exponent = 0;
  std::vector<Digits> all(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    all[i] = with_exponent ? scientific(values[i], dtype) : positional(values[i], dtype);
    left = std::max(left, all[i].whole.size());
    right = std::max(right, all[i].fraction.size());
    exponent = std::max(exponent, all[i].exponent.size());
  }
  std::vector<std::string> words(values.size());
  size_t width = left + 1 + right + exponent;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) {
      all[i].fraction.resize(right, with_exponent ? '0' : ' ');
      words[i] = left_padded(all[i].whole, left) + "." + all[i].fraction + all[i].exponent;
    } else {
      words[i] = std::isnan(values[i]) ? "nan" : values[i] > 0 ? "inf" : "-inf";
    }
    width = std::max(width, words[i].size());
  }
  for (std::string& word : words) word = left_padded(word, width);
  return words;
}

template <class T>
std::vector<std::string> padded_words(std::span<const T> values, std::string (*print)(T)) {
  std::vector<std::string> words;
  size_t width = 0;
  for (const T value : values) width = std::max(width, words.emplace_back(print(value)).size());
  for (std::string& word : words) word = left_padded(word, width);
  return words;
}

// The positions that are shown along an axis: all, or those at both ends with a gap (-1) between them.
std::vector<int64_t> shown_positions(int64_t count, bool shorten) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) {
    if (shorten && count > 2 * edge_items && i == edge_items) {
      positions.push_back(-1);
      i = count - edge_items;
    }
    positions.push_back(i);
  }
  return positions;
}

class TextLayout {
 public:
  TextLayout(const Shape& shape, bool shorten) : shape_(shape) {
    for (const int64_t dim : shape) positions_.push_back(shown_positions(dim, shorten));
  }

  // The element numbers that are shown, in order.
  std::vector<size_t> shown_elements() const {
    std::vector<size_t> elements{0};
    for (int axis = 0; axis < shape_.rank(); ++axis) {
      std::vector<size_t> longer;
      for (const size_t before : elements)
        for (const int64_t position : positions_[static_cast<size_t>(axis)])
          if (position >= 0)
            longer.push_back(before * static_cast<size_t>(shape_[axis]) + static_cast<size_t>(position));
      elements = std::move(longer);
    }
    return elements;
  }

  std::string text(std::span<const std::string> words) {
    words_ = words;
    next_ = 0;
    return block(0, " ", line_width);
  }

 private:
  std::string block(int axis, const std::string& indent, size_t width) {
    const int axes_left = shape_.rank() - axis;
    const auto& positions = positions_[static_cast<size_t>(axis)];
    std::string text = axes_left == 1 ? row(positions, indent, width - 1) : "";
    if (axes_left > 1)
      for (size_t i = 0; i < positions.size(); ++i) {
        text += indent + (positions[i] < 0 ? "..." : block(axis + 1, indent + " ", width - 1));
        if (i + 1 < positions.size()) text.append(static_cast<size_t>(axes_left) - 1, '\n');
      }
    return "[" + text.substr(std::min(indent.size(), text.size())) + "]";
  }

  std::string row(const std::vector<int64_t>& positions, const std::string& indent, size_t width) {
    std::string done, line = indent;
    for (size_t i = 0; i < positions.size(); ++i) {
      const std::string word = positions[i] < 0 ? "..." : words_[next_++];
      if (line.size() + word.size() > width && line.size() > indent.size()) {
        line.erase(line.find_last_not_of(' ') + 1);
        done += line + "\n";
        line = indent;
      }
      line += word;
      if (i + 1 < positions.size()) line += " ";
    }
    return done + line;
  }

  const Shape& shape_;
  std::vector<std::vector<int64_t>> positions_;  // by axis
  std::span<const std::string> words_;
  size_t next_ = 0;
};

template <class T>
std::vector<T> chosen(const NDArray& array, std::span<const size_t> elements) {
  const std::vector<T> all = array.to_vector<T>();
  std::vector<T> values;
  for (const size_t element : elements) values.push_back(all[element]);
  return values;
}

}  // namespace

std::string values_text(const NDArray& array) {
  if (array.size() == 0) return "[]";
  TextLayout layout(array.shape(), array.size() > most_elements);
  const std::vector<size_t> elements = layout.shown_elements();
  std::vector<std::string> words;
  if (is_floating(array.dtype())) {
    words = float_words(chosen<double>(array, elements), array.dtype());
    if (array.rank() == 0 && words[0].ends_with('.')) words[0] += '0';  // a number alone: 3.0
  } else if (array.dtype() == DType::boolean) {
    words = padded_words<int64_t>(chosen<int64_t>(array, elements),
                                  [](int64_t value) -> std::string { return value ? "True" : "False"; });
    for (std::string& word : words)
      if (array.rank() > 0) word = left_padded(word, std::string_view("False").size());
  } else {
    words =
        padded_words<int64_t>(chosen<int64_t>(array, elements), [](int64_t value) { return std::to_string(value); });
  }
  return array.rank() == 0 ? words[0] : layout.text(words);
}

}  // namespace symbind
