// A resized pixel is a weighted sum of source pixels, first along x, then along y. For each axis the sources and
// weights of all positions are computed once (Axis); rows summed along x are kept in a buffer while rows below still
// need them. Bytes are summed in integers, with weights in units of 1/2048.
#include "symbind/image/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "symbind/core/error.h"

namespace symbind {
namespace {

constexpr int weight_bits = 11;
constexpr float weight_one = 1 << weight_bits;

// For every position of the window: `taps` source indices and as many weights.
struct Axis {
  int taps = 0;
  std::vector<int32_t> source;
  std::vector<float> weight;
  std::vector<int16_t> fixed;  // the weights in units of 1/2048
};

// ---- weights --------------------------------------------------------------------------------------------------------

// At `fraction` between the second and the third of four pixels.
std::array<float, 8> cubic_weights(float fraction) {
  constexpr float a = -0.75F;
  const auto near = [](float t) { return ((a + 2) * t - (a + 3)) * t * t + 1; };
  const auto far = [](float t) { return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a; };
  const std::array<float, 4> w{far(fraction + 1), near(fraction), near(1 - fraction), 0};
  return {w[0], w[1], w[2], 1 - w[0] - w[1] - w[2]};
}

// At `fraction` between the fourth and the fifth of eight pixels.
std::array<float, 8> lanczos_weights(float fraction) {
  std::array<float, 8> w{};
  if (fraction < std::numeric_limits<float>::epsilon()) {
    w[3] = 1;
    return w;
  }
  constexpr double pi = 3.14159265358979323846;
  const auto sinc = [](double t) { return std::sin(pi * t) / (pi * t); };
  double sum = 0;
  std::array<double, 8> exact{};
  for (size_t i = 0; i < 8; ++i) {
    const double distance = fraction + 3 - static_cast<double>(i);
    exact[i] = sinc(distance) * sinc(distance / 4);
    sum += exact[i];
  }
  for (size_t i = 0; i < 8; ++i) w[i] = static_cast<float>(exact[i] / sum);
  return w;
}

// A position's centre among the source pixels: `fraction` of a pixel after the centre of pixel `index`.
struct SourcePosition {
  int64_t index = 0;
  float fraction = 0;
};

SourcePosition centre(int64_t position, double factor) {
  const auto at = static_cast<float>((static_cast<double>(position) + 0.5) * (1 / factor) - 0.5);
  const float index = std::floor(at);
  return {static_cast<int64_t>(index), at - index};
}

// Enlarging by area: a position between two source pixels is weighted by what it covers of each.
SourcePosition covered(int64_t position, double factor) {
  const auto index = static_cast<int64_t>(std::floor(static_cast<double>(position) * (1 / factor)));
  const auto past = static_cast<float>(static_cast<double>(position + 1) - static_cast<double>(index + 1) * factor);
  return {index, past <= 0 ? 0 : past - std::floor(past)};
}

Axis make_axis(int64_t from, int64_t full, int64_t begin, int64_t count, int method) {
  Axis axis;
  axis.taps = method == interpolation::cubic ? 4 : method == interpolation::lanczos ? 8 : 2;
  // How much larger the result is. Positions are multiplied by its inverse, not divided by it: at exact pixel
  // boundaries the last bit matters.
  const double factor = static_cast<double>(full) / static_cast<double>(from);
  for (int64_t i = 0; i < count; ++i) {
    SourcePosition source = method == interpolation::area ? covered(begin + i, factor) : centre(begin + i, factor);
    std::array<float, 8> weights{};
    if (axis.taps == 2) {
      if (source.index < 0) source = {0, 0};
      if (source.index >= from - 1) source = {from - 1, 0};
      weights = {1 - source.fraction, source.fraction};
    } else {
      weights = axis.taps == 4 ? cubic_weights(source.fraction) : lanczos_weights(source.fraction);
    }
    const int64_t first = source.index - (axis.taps / 2 - 1);
    for (int tap = 0; tap < axis.taps; ++tap) {
      const float weight = weights[static_cast<size_t>(tap)];
      axis.source.push_back(static_cast<int32_t>(std::clamp<int64_t>(first + tap, 0, from - 1)));
      axis.weight.push_back(weight);
      axis.fixed.push_back(static_cast<int16_t>(std::nearbyint(weight * weight_one)));
    }
  }
  return axis;
}

// ---- sums along x ---------------------------------------------------------------------------------------------------

// Two taps of bytes give 15 bits; four and eight give up to 20, and a sign.
template <class Element, int taps>
using RowSum =
    std::conditional_t<std::is_same_v<Element, float>, float, std::conditional_t<taps == 2, int16_t, int32_t>>;

template <class Element, int taps, int channels>
void sum_along_x(const Element* row, const Axis& axis, int64_t width, int64_t depth, RowSum<Element, taps>* to) {
  const int64_t c_end = channels ? channels : depth;
  const int32_t* source = axis.source.data();
  for (int64_t x = 0; x < width; ++x, source += taps, to += c_end)
    for (int64_t c = 0; c < c_end; ++c) {
      if constexpr (std::is_same_v<Element, float>) {
        float sum = 0;
        for (int tap = 0; tap < taps; ++tap) sum += row[source[tap] * c_end + c] * axis.weight[x * taps + tap];
        to[c] = sum;
      } else {
        int32_t sum = 0;
        for (int tap = 0; tap < taps; ++tap) sum += row[source[tap] * c_end + c] * axis.fixed[x * taps + tap];
        to[c] = static_cast<RowSum<Element, taps>>(taps == 2 ? sum >> 4 : sum);
      }
    }
}

// ---- sums along y ---------------------------------------------------------------------------------------------------

uint8_t to_byte(int64_t value) { return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255)); }

// Products keep their upper 16 bits, of which two are for the final rounding.
void sum_two_rows(const int16_t* above, const int16_t* below, int16_t w0, int16_t w1, int64_t count, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    const auto upper = static_cast<int16_t>((int32_t{above[i]} * w0) >> 16);
    const auto lower = static_cast<int16_t>((int32_t{below[i]} * w1) >> 16);
    to[i] = static_cast<uint8_t>((upper + lower + 2) >> 2);
  }
}

template <class Element, int taps>
void sum_along_y(const std::array<const RowSum<Element, taps>*, taps>& rows, const Axis& axis, int64_t y, int64_t count,
                 Element* to) {
  if constexpr (std::is_same_v<Element, float>) {
    const float* weight = axis.weight.data() + y * taps;
    for (int64_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int tap = 0; tap < taps; ++tap) sum += rows[tap][i] * weight[tap];
      to[i] = sum;
    }
  } else {
    const int16_t* weight = axis.fixed.data() + y * taps;
    if constexpr (taps == 2) {
      sum_two_rows(rows[0], rows[1], weight[0], weight[1], count, to);
    } else {
      constexpr int bits = 2 * weight_bits;
      for (int64_t i = 0; i < count; ++i) {
        int64_t sum = int64_t{1} << (bits - 1);
        for (int tap = 0; tap < taps; ++tap) sum += int64_t{rows[tap][i]} * weight[tap];
        to[i] = to_byte(sum >> bits);
      }
    }
  }
}

template <class Element, int taps>
void resize_by_taps(BasicPixelView<const Element> from, const Axis& along_x, const Axis& along_y,
                    BasicPixelView<Element> to) {
  using Sum = RowSum<Element, taps>;
  const int64_t count = to.width * to.channels;
  std::vector<Sum> buffer(static_cast<size_t>(count * taps));
  std::array<int64_t, taps> held;  // which source row is in each part of the buffer
  held.fill(-1);
  for (int64_t y = 0; y < to.height; ++y) {
    std::array<const Sum*, taps> rows{};
    for (int tap = 0; tap < taps; ++tap) {
      const int64_t source = along_y.source[static_cast<size_t>(y * taps + tap)];
      const auto part = static_cast<size_t>(source % taps);
      Sum* const sums = buffer.data() + static_cast<int64_t>(part) * count;
      if (held[part] != source) {
        if (to.channels == 3)
          sum_along_x<Element, taps, 3>(from.row(source), along_x, to.width, 3, sums);
        else if (to.channels == 1)
          sum_along_x<Element, taps, 1>(from.row(source), along_x, to.width, 1, sums);
        else
          sum_along_x<Element, taps, 0>(from.row(source), along_x, to.width, to.channels, sums);
        held[part] = source;
      }
      rows[static_cast<size_t>(tap)] = sums;
    }
    sum_along_y<Element, taps>(rows, along_y, y, count, to.row(y));
  }
}

// ---- other methods --------------------------------------------------------------------------------------------------

template <class Element>
void resize_nearest(BasicPixelView<const Element> from, int64_t height, int64_t width, int64_t y0, int64_t x0,
                    BasicPixelView<Element> to) {
  const auto source = [](int64_t position, int64_t size, int64_t full) {
    const double scale = 1 / (static_cast<double>(full) / static_cast<double>(size));
    return std::min(static_cast<int64_t>(std::floor(static_cast<double>(position) * scale)), size - 1);
  };
  std::vector<int64_t> columns(static_cast<size_t>(to.width));
  for (int64_t x = 0; x < to.width; ++x)
    columns[static_cast<size_t>(x)] = source(x0 + x, from.width, width) * to.channels;
  for (int64_t y = 0; y < to.height; ++y) {
    const Element* const row = from.row(source(y0 + y, from.height, height));
    Element* out = to.row(y);
    for (const int64_t column : columns) out = std::copy_n(row + column, to.channels, out);
  }
}

// The source pixels that a position covers, and how much of each; the weights' sum is 1.
struct Cover {
  int64_t first = 0;
  std::vector<float> weights;
};

Cover cover_of(int64_t position, int64_t size, int64_t full) {
  const double scale = static_cast<double>(size) / static_cast<double>(full);
  const double begin = static_cast<double>(position) * scale, end = begin + scale;
  const double width = std::min(scale, static_cast<double>(size) - begin);
  auto first = static_cast<int64_t>(std::ceil(begin)), last = static_cast<int64_t>(std::floor(end));
  last = std::min(last, size - 1);
  first = std::min(first, last);
  Cover cover;
  const bool partly_before = static_cast<double>(first) - begin > 1e-3;
  cover.first = partly_before ? first - 1 : first;
  if (partly_before) cover.weights.push_back(static_cast<float>((static_cast<double>(first) - begin) / width));
  for (int64_t i = first; i < last; ++i) cover.weights.push_back(static_cast<float>(1 / width));
  if (const double rest = std::min(end - static_cast<double>(last), 1.); rest > 1e-3)
    cover.weights.push_back(static_cast<float>(std::min(rest, width) / width));
  return cover;
}

template <class Element>
Element from_float(float value) {
  if constexpr (std::is_same_v<Element, float>)
    return value;
  else
    return to_byte(static_cast<int64_t>(std::nearbyint(value)));
}

template <class Element>
void shrink_by_area(BasicPixelView<const Element> from, int64_t height, int64_t width, int64_t y0, int64_t x0,
                    BasicPixelView<Element> to) {
  // Averages of 2 × 2 bytes round halves up.
  const bool halves = std::is_same_v<Element, uint8_t> && from.height == 2 * height && from.width == 2 * width;
  std::vector<Cover> columns;
  for (int64_t x = 0; x < to.width; ++x) columns.push_back(cover_of(x0 + x, from.width, width));
  const int64_t count = to.width * to.channels;
  std::vector<float> sums(static_cast<size_t>(count));
  for (int64_t y = 0; y < to.height; ++y) {
    const Cover rows = cover_of(y0 + y, from.height, height);
    std::fill(sums.begin(), sums.end(), 0.F);
    for (size_t r = 0; r < rows.weights.size(); ++r) {
      const Element* const row = from.row(rows.first + static_cast<int64_t>(r));
      float* sum = sums.data();
      for (const Cover& column : columns)
        for (int64_t c = 0; c < to.channels; ++c, ++sum) {
          float along_x = 0;
          const Element* pixel = row + column.first * to.channels + c;
          for (const float weight : column.weights) {
            along_x += static_cast<float>(*pixel) * weight;
            pixel += to.channels;
          }
          *sum += along_x * rows.weights[r];
        }
    }
    Element* const out = to.row(y);
    for (int64_t i = 0; i < count; ++i) {
      const float sum = sums[static_cast<size_t>(i)];
      // NOLINTNEXTLINE(bugprone-incorrect-roundings): sums are not negative, and this form is vectorised
      out[i] = halves ? static_cast<Element>(sum + 0.5F) : from_float<Element>(sum);
    }
  }
}

template <class Element>
void copy_window(BasicPixelView<const Element> from, int64_t y0, int64_t x0, BasicPixelView<Element> to) {
  for (int64_t y = 0; y < to.height; ++y)
    std::memcpy(to.row(y), from.row(y0 + y) + x0 * from.channels,
                static_cast<size_t>(to.width * to.channels) * sizeof(Element));
}

}  // namespace

int interpolation_for(int method, int64_t from_height, int64_t from_width, int64_t to_height, int64_t to_width,
                      std::string_view who) {
  if (method >= interpolation::nearest && method <= interpolation::lanczos) return method;
  require(method == interpolation::automatic, "[", who,
          "] the interpolation must be 0 (nearest), 1 (bilinear), 2 (cubic), 3 (area), 4 (Lanczos), 9 (automatic) or "
          "10 (random): ",
          method);
  if (to_height > from_height && to_width > from_width) return interpolation::cubic;
  if (to_height < from_height && to_width < from_width) return interpolation::area;
  return interpolation::linear;
}

template <class Element>
void resize_window(BasicPixelView<const Element> from, int64_t height, int64_t width, int64_t y, int64_t x,
                   BasicPixelView<Element> to, int method) {
  if (from.height == height && from.width == width) return copy_window(from, y, x, to);
  // Halving both sides, two pixels per side are summed either way.
  if (method == interpolation::linear && from.height == 2 * height && from.width == 2 * width)
    method = interpolation::area;
  if (method == interpolation::nearest) return resize_nearest(from, height, width, y, x, to);
  if (method == interpolation::area && height <= from.height && width <= from.width)
    return shrink_by_area(from, height, width, y, x, to);
  const Axis along_x = make_axis(from.width, width, x, to.width, method);
  const Axis along_y = make_axis(from.height, height, y, to.height, method);
  if (along_x.taps == 2) return resize_by_taps<Element, 2>(from, along_x, along_y, to);
  if (along_x.taps == 4) return resize_by_taps<Element, 4>(from, along_x, along_y, to);
  resize_by_taps<Element, 8>(from, along_x, along_y, to);
}

template void resize_window(BasicPixelView<const uint8_t> from, int64_t height, int64_t width, int64_t y, int64_t x,
                            BasicPixelView<uint8_t> to, int method);
template void resize_window(BasicPixelView<const float> from, int64_t height, int64_t width, int64_t y, int64_t x,
                            BasicPixelView<float> to, int method);

}  // namespace symbind
