// A resized pixel is a weighted sum of source pixels, first along x, then along y. For each axis the sources and
// weights of all positions are computed once (Axis); rows summed along x are kept in a buffer while rows below still
// need them. Bytes are summed in integers, with weights in units of 1/2048.
#include "symbind/image/resize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "symbind/core/error.h"
#include "symbind/image/resize_taps.h"

namespace symbind {
namespace {

using namespace resizing;

// For every position of the window: the source indices of all taps and as many weights.
struct Axis {
  std::vector<int32_t> source;
  std::vector<float> weight;
  std::vector<int16_t> fixed;  // the weights in units of 1/2048
};

template <int taps>
Axis make_axis(int64_t from, int64_t full, int64_t begin, int64_t count, int method) {
  Axis axis;
  for (int64_t i = 0; i < count; ++i) {
    const Taps<taps> at = taps_at<taps>(begin + i, from, full, method == interpolation::area);
    for (int tap = 0; tap < taps; ++tap) {
      axis.source.push_back(static_cast<int32_t>(at.source[tap]));
      axis.weight.push_back(at.weight[tap]);
      axis.fixed.push_back(fixed_weight(at.weight[tap]));
    }
  }
  return axis;
}

// ---- sums along x ---------------------------------------------------------------------------------------------------

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
        to[c] = row_sum<taps>(sum);
      }
    }
}

// ---- sums along y ---------------------------------------------------------------------------------------------------

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
      for (int64_t i = 0; i < count; ++i) to[i] = sum_of_two(rows[0][i], rows[1][i], weight[0], weight[1]);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        int64_t sum = half_of_rows;
        for (int tap = 0; tap < taps; ++tap) sum += int64_t{rows[tap][i]} * weight[tap];
        to[i] = sum_of_rows(sum);
      }
    }
  }
}

// A window of height × width, from (y0, x0).
template <class Element, int taps>
void resize_by_taps(BasicPixelView<const Element> from, int64_t height, int64_t width, int64_t y0, int64_t x0,
                    BasicPixelView<Element> to, int method) {
  const Axis along_x = make_axis<taps>(from.width, width, x0, to.width, method);
  const Axis along_y = make_axis<taps>(from.height, height, y0, to.height, method);
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
  std::vector<int64_t> columns(static_cast<size_t>(to.width));
  for (int64_t x = 0; x < to.width; ++x)
    columns[static_cast<size_t>(x)] = nearest_source(x0 + x, from.width, width) * to.channels;
  for (int64_t y = 0; y < to.height; ++y) {
    const Element* const row = from.row(nearest_source(y0 + y, from.height, height));
    Element* out = to.row(y);
    for (const int64_t column : columns) out = std::copy_n(row + column, to.channels, out);
  }
}

struct WeightedPixels {
  int64_t first = 0;
  std::vector<float> weights;
};

WeightedPixels covered_pixels(int64_t position, int64_t size, int64_t full) {
  const Cover cover = cover_of(position, size, full);
  WeightedPixels pixels{cover.first, {}};
  for (int64_t i = 0; i < cover.count; ++i) pixels.weights.push_back(cover.weight(i));
  return pixels;
}

template <class Element>
void shrink_by_area(BasicPixelView<const Element> from, int64_t height, int64_t width, int64_t y0, int64_t x0,
                    BasicPixelView<Element> to) {
  const bool halves = from.height == 2 * height && from.width == 2 * width;
  std::vector<WeightedPixels> columns;
  for (int64_t x = 0; x < to.width; ++x) columns.push_back(covered_pixels(x0 + x, from.width, width));
  const int64_t count = to.width * to.channels;
  std::vector<float> sums(static_cast<size_t>(count));
  for (int64_t y = 0; y < to.height; ++y) {
    const WeightedPixels rows = covered_pixels(y0 + y, from.height, height);
    std::fill(sums.begin(), sums.end(), 0.F);
    for (size_t r = 0; r < rows.weights.size(); ++r) {
      const Element* const row = from.row(rows.first + static_cast<int64_t>(r));
      float* sum = sums.data();
      for (const WeightedPixels& column : columns)
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
    for (int64_t i = 0; i < count; ++i) out[i] = from_average<Element>(sums[static_cast<size_t>(i)], halves);
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
  if (method == interpolation::cubic) return resize_by_taps<Element, 4>(from, height, width, y, x, to, method);
  if (method == interpolation::lanczos) return resize_by_taps<Element, 8>(from, height, width, y, x, to, method);
  resize_by_taps<Element, 2>(from, height, width, y, x, to, method);
}

template void resize_window(BasicPixelView<const uint8_t> from, int64_t height, int64_t width, int64_t y, int64_t x,
                            BasicPixelView<uint8_t> to, int method);
template void resize_window(BasicPixelView<const float> from, int64_t height, int64_t width, int64_t y, int64_t x,
                            BasicPixelView<float> to, int method);

}  // namespace symbind
