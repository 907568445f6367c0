// Bilinear resizing and adaptive pooling along one axis, for every device: which elements of the input an element of
// the output reads and with which weights, and the reverse for the gradients.
#pragma once

#include <cstdint>

#include "symbind/backend/freestanding.h"

namespace symbind {

// An element of the output is (1 - weight) · in[first] + weight · in[second].
template <class C>
struct BilinearAxis {
  int64_t in, out;
  C ratio;
  bool align_corners;

  BilinearAxis(int64_t in_, int64_t out_, bool align) : in(in_), out(out_), ratio(0), align_corners(align) {
    if (out > 1)
      ratio = align ? static_cast<C>(in - 1) / static_cast<C>(out - 1) : static_cast<C>(in) / static_cast<C>(out);
  }

  struct Source {
    int64_t first, second;
    C weight;
  };
  constexpr Source source(int64_t at) const {
    C position = ratio * static_cast<C>(at);
    if (!align_corners) {
      position = ratio * (static_cast<C>(at) + C(0.5)) - C(0.5);
      if (position < C(0)) position = C(0);
    }
    int64_t first = static_cast<int64_t>(position);
    if (first > in - 1) first = in - 1;
    return {first, first < in - 1 ? first + 1 : first, position - static_cast<C>(first)};
  }

  // The outputs that may read element `at`: from begin to end.
  struct Range {
    int64_t begin, end;
  };
  constexpr Range readers(int64_t at) const {
    if (ratio == C(0)) return {0, out};
    const C shift = align_corners ? C(0) : C(0.5);
    int64_t begin = static_cast<int64_t>((static_cast<C>(at) - C(1) + shift) / ratio - shift) - 2;
    int64_t end = static_cast<int64_t>((static_cast<C>(at) + C(1) + shift) / ratio - shift) + 3;
    if (begin < 0 || at == 0) begin = 0;
    if (end > out || at == in - 1) end = out;
    return {begin, end};
  }
  constexpr C weight(int64_t output, int64_t at) const {
    const Source from = source(output);
    return (from.first == at ? C(1) - from.weight : C(0)) + (from.second == at ? from.weight : C(0));
  }
};

// Window i of an axis is from ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉. Index holds the products of both extents: 32 bits
// are quicker to divide on a GPU.
template <class Index>
struct AdaptiveAxis {
  Index in, out;

  constexpr Index begin(Index window) const { return window * in / out; }
  constexpr Index end(Index window) const { return ((window + 1) * in + out - 1) / out; }
  // The windows that contain element `at`.
  constexpr Index first_window(Index at) const { return at * out / in; }
  constexpr Index end_window(Index at) const { return ((at + 1) * out + in - 1) / in; }
};

// ---- Two axes -------------------------------------------------------------------------------------------------------
// Each is called with the element's row and column and load(i), element i of the plane that is read.

template <class C>
struct BilinearPlane {
  BilinearAxis<C> rows, columns;

  template <class Load>
  constexpr C forward(int64_t row, int64_t column, const Load& load) const {
    const auto y = rows.source(row);
    const auto x = columns.source(column);
    const C upper =
        (C(1) - x.weight) * load(y.first * columns.in + x.first) + x.weight * load(y.first * columns.in + x.second);
    const C lower =
        (C(1) - x.weight) * load(y.second * columns.in + x.first) + x.weight * load(y.second * columns.in + x.second);
    return (C(1) - y.weight) * upper + y.weight * lower;
  }
  template <class Load>
  constexpr C backward(int64_t row, int64_t column, const Load& load) const {
    const auto y = rows.readers(row);
    const auto x = columns.readers(column);
    C sum = 0;
    for (int64_t i = y.begin; i < y.end; ++i) {
      const C of_row = rows.weight(i, row);
      if (of_row == C(0)) continue;
      C line = 0;
      for (int64_t j = x.begin; j < x.end; ++j) line += columns.weight(j, column) * load(i * columns.out + j);
      sum += of_row * line;
    }
    return sum;
  }
};

template <class C, class Index = int64_t>
struct AdaptivePlane {
  AdaptiveAxis<Index> rows, columns;

  template <class Load>
  constexpr C forward(Index row, Index column, const Load& load) const {
    const Index top = rows.begin(row), bottom = rows.end(row), left = columns.begin(column),
                right = columns.end(column);
    C sum = 0;
    for (Index i = top; i < bottom; ++i)
      for (Index j = left; j < right; ++j) sum += load(i * columns.in + j);
    return sum / static_cast<C>((bottom - top) * (right - left));
  }
  template <class Load>
  constexpr C backward(Index row, Index column, const Load& load) const {
    const Index bottom = rows.end_window(row), left = columns.first_window(column), right = columns.end_window(column);
    C sum = 0;
    for (Index i = rows.first_window(row); i < bottom; ++i) {
      const Index height = rows.end(i) - rows.begin(i);
      for (Index j = left; j < right; ++j)
        sum += load(i * columns.out + j) / static_cast<C>(height * (columns.end(j) - columns.begin(j)));
    }
    return sum;
  }
};

}  // namespace symbind
