// The kernels of Winograd convolution as templates over the vector's width. Included by one source for each instruction
// set, which compiles everything here for it: so nothing but templates over the width, and nothing from the standard
// library, may be here.
#pragma once

#include "symbind/backend/cpu/winograd.h"

namespace symbind::cpu_backend::winograd {

template <int W>
struct VectorOf {
  using type [[gnu::vector_size(W * sizeof(float))]] = float;
  using unaligned [[gnu::vector_size(W * sizeof(float)), gnu::aligned(4), gnu::may_alias]] = float;
};
template <int W>
using Vector = typename VectorOf<W>::type;

template <int W>
[[gnu::always_inline]] inline Vector<W> load(const float* from) {
  return *reinterpret_cast<const typename VectorOf<W>::unaligned*>(from);
}
template <int W>
[[gnu::always_inline]] inline void store(float* to, Vector<W> value) {
  *reinterpret_cast<typename VectorOf<W>::unaligned*>(to) = value;
}

// ---- The transforms of one line -------------------------------------------------------------------------------------
// With the points 0, ±a, ±b and infinity, N(p) the product of the differences of p to the other points:
//   data    d(0..5)  →  the coefficients of Π (x - q) over the other points q
//   kernel  w(0..2)  →  w(p) / N(p)
//   tile    m(0..5)  →  Σ over the points of m(p) pⁱ, i = 0..3
// and for the gradient of the kernel the transposes of the last two.

inline constexpr float a1 = 0.75f, a2 = a1 * a1, a3 = a2 * a1, b1 = 1.5f, b2 = b1 * b1, b3 = b2 * b1;
inline constexpr float over_0 = 1 / (a2 * b2), over_a = 1 / (2 * a2 * (a2 - b2)), over_b = 1 / (2 * b2 * (b2 - a2));

template <int W>
[[gnu::always_inline]] inline void line_of_data(const Vector<W> (&d)[6], Vector<W> (&to)[6]) {
  const Vector<W> even_a = d[4] - b2 * d[2], odd_a = a1 * d[3] - (a1 * b2) * d[1];
  const Vector<W> even_b = d[4] - a2 * d[2], odd_b = b1 * d[3] - (b1 * a2) * d[1];
  to[0] = (a2 * b2) * d[0] + (d[4] - (a2 + b2) * d[2]);
  to[1] = even_a + odd_a;
  to[2] = even_a - odd_a;
  to[3] = even_b + odd_b;
  to[4] = even_b - odd_b;
  to[5] = (a2 * b2) * d[1] + (d[5] - (a2 + b2) * d[3]);
}

template <int W>
[[gnu::always_inline]] inline void line_of_kernel(const Vector<W> (&w)[3], Vector<W> (&to)[6]) {
  const Vector<W> even_a = over_a * w[0] + (a2 * over_a) * w[2], odd_a = (a1 * over_a) * w[1];
  const Vector<W> even_b = over_b * w[0] + (b2 * over_b) * w[2], odd_b = (b1 * over_b) * w[1];
  to[0] = over_0 * w[0];
  to[1] = even_a + odd_a;
  to[2] = even_a - odd_a;
  to[3] = even_b + odd_b;
  to[4] = even_b - odd_b;
  to[5] = w[2];
}

template <int W>
[[gnu::always_inline]] inline void line_of_tile(const Vector<W> (&m)[6], Vector<W> (&to)[4]) {
  const Vector<W> sum_a = m[1] + m[2], difference_a = m[1] - m[2], sum_b = m[3] + m[4], difference_b = m[3] - m[4];
  to[0] = m[0] + sum_a + sum_b;
  to[1] = a1 * difference_a + b1 * difference_b;
  to[2] = a2 * sum_a + b2 * sum_b;
  to[3] = a3 * difference_a + (b3 * difference_b + m[5]);
}

template <int W>
[[gnu::always_inline]] inline void line_of_grad(const Vector<W> (&g)[4], Vector<W> (&to)[6]) {
  const Vector<W> even_a = g[0] + a2 * g[2], odd_a = a1 * g[1] + a3 * g[3];
  const Vector<W> even_b = g[0] + b2 * g[2], odd_b = b1 * g[1] + b3 * g[3];
  to[0] = g[0];
  to[1] = even_a + odd_a;
  to[2] = even_a - odd_a;
  to[3] = even_b + odd_b;
  to[4] = even_b - odd_b;
  to[5] = g[3];
}

template <int W>
[[gnu::always_inline]] inline void line_of_kernel_grad(const Vector<W> (&s)[6], Vector<W> (&to)[3]) {
  const Vector<W> sum_a = s[1] + s[2], difference_a = s[1] - s[2], sum_b = s[3] + s[4], difference_b = s[3] - s[4];
  to[0] = over_0 * s[0] + (over_a * sum_a + over_b * sum_b);
  to[1] = (a1 * over_a) * difference_a + (b1 * over_b) * difference_b;
  to[2] = (a2 * over_a) * sum_a + ((b2 * over_b) * sum_b + s[5]);
}

// A square of In × In vectors to Out × Out: along the columns, then along the rows. `element(y, x)` returns a vector,
// `result(y, x, vector)` takes one.
template <int W, int In, int Out, class Line, class Element, class Result>
[[gnu::always_inline]] inline void transform_square(Line line, Element element, Result result) {
  Vector<W> between[Out][In];
#pragma GCC unroll 6
  for (int x = 0; x < In; ++x) {
    Vector<W> from[In], to[Out];
#pragma GCC unroll 6
    for (int y = 0; y < In; ++y) from[y] = element(y, x);
    line(from, to);
#pragma GCC unroll 6
    for (int y = 0; y < Out; ++y) between[y][x] = to[y];
  }
#pragma GCC unroll 6
  for (int y = 0; y < Out; ++y) {
    Vector<W> to[Out];
    line(between[y], to);
#pragma GCC unroll 6
    for (int x = 0; x < Out; ++x) result(y, x, to[x]);
  }
}

// ---- Tiles in arrays ------------------------------------------------------------------------------------------------

// A square of Edge × Edge positions of an image that may reach over its edges.
template <int W, int Edge>
struct Square {
  int64_t offset;                    // of its corner, which may be outside the image
  int64_t top, bottom, left, right;  // the part inside

  Square(const Strides& strides, const Tiles& tiles, int64_t number, int64_t pad_y, int64_t pad_x) {
    const int64_t line = number / tiles.columns;
    const int64_t y = line % tiles.rows * tile - pad_y, x = number % tiles.columns * tile - pad_x;
    offset = line / tiles.rows * strides.image + y * strides.row + x * strides.pixel;
    clip(y, strides.height, top, bottom);
    clip(x, strides.width, left, right);
  }
  bool is_whole() const { return bottom - top == Edge && right - left == Edge; }

 private:
  static void clip(int64_t start, int64_t extent, int64_t& first, int64_t& last) {
    first = start < 0 ? -start : 0;
    last = extent - start < Edge ? extent - start : Edge;
    if (last < first) first = last = 0;
  }
};

// The vector of channels from `channel` on at each position of a square, zero outside the image.
template <int W, int Edge>
void gather(const float* data, const Strides& strides, int64_t channel, const Square<W, Edge>& square, float* to) {
  for (int i = 0; i < Edge * Edge; ++i) store<W>(to + i * W, Vector<W>{});
  const bool has_vectors = strides.has_vectors(W);
  for (int64_t y = square.top; y < square.bottom; ++y)
    for (int64_t x = square.left; x < square.right; ++x) {
      const float* from = data + (square.offset + y * strides.row + x * strides.pixel);
      float* vector = to + (y * Edge + x) * W;
      if (has_vectors)
        store<W>(vector, load<W>(from + strides.channel(channel)));
      else
        for (int lane = 0; lane < W; ++lane) vector[lane] = from[strides.channel(channel + lane)];
    }
}

template <int W, int Edge, class Line>
[[gnu::always_inline]] inline void transform_tiles(Line line, const float* data, const Strides& strides,
                                                   const Tiles& tiles, int64_t pad_y, int64_t pad_x, int64_t begin,
                                                   int64_t end, const TransformedTiles& to) {
  const bool has_vectors = strides.has_vectors(W);
  const int64_t stride = to.frequency_stride();
  alignas(64) float gathered[Edge * Edge * W];
  for (int64_t channel = 0; channel < to.channels; channel += W)
    for (int64_t number = begin; number < end; ++number) {
      const Square<W, Edge> square(strides, tiles, number, pad_y, pad_x);
      const float* corner = gathered;
      int64_t row = Edge * W, pixel = W;
      if (square.is_whole() && has_vectors) {
        corner = data + (square.offset + strides.channel(channel));
        row = strides.row;
        pixel = strides.pixel;
      } else {
        gather<W, Edge>(data, strides, channel, square, gathered);
      }
      const int64_t index = number - to.begin, first = index / to.rows * to.rows;
      const int64_t rows = to.count - first < to.rows ? to.count - first : to.rows;
      float* target = to.data + (first * to.channels + channel * rows + (index - first) * W);
      transform_square<W, Edge, window>(
          line, [&](int y, int x) { return load<W>(corner + (y * row + x * pixel)); },
          [&](int y, int x, Vector<W> value) { store<W>(target + (y * window + x) * stride, value); });
    }
}

template <int W>
void transform_data(const float* data, const Strides& strides, const Tiles& tiles, int64_t begin, int64_t end,
                    const TransformedTiles& to) {
  transform_tiles<W, window>([](auto& from, auto& line) { line_of_data<W>(from, line); }, data, strides, tiles,
                             tiles.pad_y, tiles.pad_x, begin, end, to);
}

template <int W>
void transform_grad(const float* grad, const Strides& strides, const Tiles& tiles, int64_t begin, int64_t end,
                    const TransformedTiles& to) {
  transform_tiles<W, tile>([](auto& from, auto& line) { line_of_grad<W>(from, line); }, grad, strides, tiles, 0, 0,
                           begin, end, to);
}

// The outputs of a tile from its sums, which are `stride` apart.
template <int W>
[[gnu::always_inline]] inline void finish_tile(const float* sums, int64_t stride, const Square<W, tile>& square,
                                               int64_t channel, const Finish& finish, float* output,
                                               const Strides& strides) {
  Vector<W> shift{};
  if (finish.bias) shift = load<W>(finish.bias + channel);
  const bool has_vectors = strides.has_vectors(W), direct = square.is_whole() && has_vectors;
  alignas(64) float made[tile * tile * W];
  if (finish.added && !direct) gather<W, tile>(finish.added, strides, channel, square, made);
  const int64_t offset = square.offset + strides.channel(channel);
  float* to = direct ? output + offset : made;
  const float* added = direct && finish.added ? finish.added + offset : made;
  const int64_t row = direct ? strides.row : tile * W, pixel = direct ? strides.pixel : W;
  transform_square<W, window, tile>([](auto& from, auto& line) { line_of_tile<W>(from, line); },
                                    [&](int y, int x) { return load<W>(sums + (y * window + x) * stride); },
                                    [&](int y, int x, Vector<W> value) {
                                      value += shift;
                                      if (finish.added) value += load<W>(added + (y * row + x * pixel));
                                      if (finish.relu) value = value < 0 ? Vector<W>{} : value;
                                      store<W>(to + (y * row + x * pixel), value);
                                    });
  if (direct) return;
  for (int64_t y = square.top; y < square.bottom; ++y)
    for (int64_t x = square.left; x < square.right; ++x) {
      const float* vector = made + (y * tile + x) * W;
      float* target = output + (square.offset + y * strides.row + x * strides.pixel);
      if (has_vectors)
        store<W>(target + strides.channel(channel), load<W>(vector));
      else
        for (int lane = 0; lane < W; ++lane) target[strides.channel(channel + lane)] = vector[lane];
    }
}

// ---- Kernels and their gradient -------------------------------------------------------------------------------------

template <int W>
void transform_weights(const float* weights, const WeightStrides& strides, const Panels& panels, int64_t panel,
                       int64_t begin, int64_t end, float* to) {
  const int64_t stride = panels.frequency_stride();
  alignas(64) float lanes[9 * W];
  for (int64_t vector = 0; vector < panels.vectors(panel); ++vector)
    for (int64_t channel = begin; channel < end; ++channel) {
      const int64_t filter = panel * panels.panel_filters() + vector * W;
      const float* from = weights + (filter * strides.filter + channel * strides.channel);
      for (int lane = 0; lane < W; ++lane)
        for (int y = 0; y < 3; ++y)
          for (int x = 0; x < 3; ++x)
            lanes[(y * 3 + x) * W + lane] = from[lane * strides.filter + y * strides.y + x * strides.x];
      float* target = to + (channel * panels.panel_filters() + vector * W);
      const int corner = strides.flipped ? 8 : 0, step = strides.flipped ? -1 : 1;
      transform_square<W, 3, window>(
          [](auto& line_from, auto& line) { line_of_kernel<W>(line_from, line); },
          [&](int y, int x) { return load<W>(lanes + (corner + step * (y * 3 + x)) * W); },
          [&](int y, int x, Vector<W> value) { store<W>(target + (y * window + x) * stride, value); });
    }
}

template <int W>
void transform_weight_grad(const float* sums, const Panels& panels, int64_t panel, float* weight_grad,
                           const WeightStrides& strides) {
  const int64_t stride = panels.frequency_stride();
  alignas(64) float lanes[9 * W];
  for (int64_t vector = 0; vector < panels.vectors(panel); ++vector)
    for (int64_t channel = 0; channel < panels.channels; ++channel) {
      const float* from = sums + (channel * panels.panel_filters() + vector * W);
      transform_square<W, window, 3>([](auto& line_from, auto& line) { line_of_kernel_grad<W>(line_from, line); },
                                     [&](int y, int x) { return load<W>(from + (y * window + x) * stride); },
                                     [&](int y, int x, Vector<W> value) { store<W>(lanes + (y * 3 + x) * W, value); });
      const int64_t filter = panel * panels.panel_filters() + vector * W;
      float* to = weight_grad + (filter * strides.filter + channel * strides.channel);
      for (int lane = 0; lane < W; ++lane)
        for (int y = 0; y < 3; ++y)
          for (int x = 0; x < 3; ++x)
            to[lane * strides.filter + y * strides.y + x * strides.x] = lanes[(y * 3 + x) * W + lane];
    }
}

// ---- Products -------------------------------------------------------------------------------------------------------

// Terms that are summed in one piece: the error of a long sum grows with its length.
inline constexpr int64_t slab = 64;

// (Rows tiles × channels) · (channels × Columns vectors of filters) for one frequency.
template <int W, int Rows, int Columns>
void multiply_rows(const float* data, const float* weights, int64_t channels, float* to, int64_t column_stride,
                   bool first) {
  Vector<W> sums[Rows][Columns] = {};
  for (int64_t channel = 0; channel < channels; channel += W, data += Rows * W) {
#pragma GCC unroll 4
    for (int lane = 0; lane < W; ++lane, weights += 2 * W) {
      Vector<W> weight[Columns];
#pragma GCC unroll 2
      for (int column = 0; column < Columns; ++column) weight[column] = load<W>(weights + column * W);
#pragma GCC unroll 14
      for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 2
        for (int column = 0; column < Columns; ++column) sums[row][column] += data[row * W + lane] * weight[column];
    }
  }
#pragma GCC unroll 14
  for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 2
    for (int column = 0; column < Columns; ++column) {
      float* target = to + (column * column_stride + row * W);
      store<W>(target, first ? sums[row][column] : load<W>(target) + sums[row][column]);
    }
}

template <int W>
inline constexpr int most_rows = W == 16 ? 14 : 6;  // times two columns: the accumulators fill the registers

template <int W, int Columns, int Rows = most_rows<W>>
[[gnu::always_inline]] inline void multiply_group(int64_t rows, const float* data, const float* weights,
                                                  int64_t channels, float* to, int64_t column_stride) {
  if (rows == Rows) {
    for (int64_t channel = 0; channel < channels; channel += slab)
      multiply_rows<W, Rows, Columns>(data + channel * Rows, weights + channel * 2 * W,
                                      channels - channel < slab ? channels - channel : slab, to, column_stride,
                                      channel == 0);
  } else if constexpr (Rows > 1) {
    multiply_group<W, Columns, Rows - 1>(rows, data, weights, channels, to, column_stride);
  }
}

template <int W>
void multiply(const TransformedTiles& data, const Panels& panels, int64_t panel, const float* weights, float* sums,
              const Tiles& tiles, const Finish& finish, float* output, const Strides& strides) {
  const int64_t vectors = panels.vectors(panel), column_stride = data.count * W;
  const int64_t stride = 2 * column_stride + padding;
  for (int64_t frequency = 0; frequency < products; ++frequency)
    for (int64_t first = 0; first < data.count; first += data.rows) {
      const int64_t rows = data.count - first < data.rows ? data.count - first : data.rows;
      const float* from = data.data + (frequency * data.frequency_stride() + first * data.channels);
      const float* panel_weights = weights + frequency * panels.frequency_stride();
      float* to = sums + (frequency * stride + first * W);
      if (vectors == 2)
        multiply_group<W, 2>(rows, from, panel_weights, data.channels, to, column_stride);
      else
        multiply_group<W, 1>(rows, from, panel_weights, data.channels, to, column_stride);
    }
  for (int64_t vector = 0; vector < vectors; ++vector)
    for (int64_t index = 0; index < data.count; ++index) {
      const Square<W, tile> square(strides, tiles, data.begin + index, 0, 0);
      finish_tile<W>(sums + (vector * column_stride + index * W), stride, square,
                     panel * panels.panel_filters() + vector * W, finish, output, strides);
    }
}

// (Rows channels × tiles) · (tiles × Columns vectors of filters) for one frequency.
template <int W, int Rows, int Columns>
void accumulate_rows(const float* data, const float* grad, int64_t count, int64_t column_stride, bool first,
                     float* to) {
  Vector<W> sums[Rows][Columns] = {};
#pragma GCC unroll 2
  for (int64_t i = 0; i < count; ++i, data += W, grad += W) {
    Vector<W> factor[Columns];
#pragma GCC unroll 2
    for (int column = 0; column < Columns; ++column) factor[column] = load<W>(grad + column * column_stride);
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 2
      for (int column = 0; column < Columns; ++column) sums[row][column] += data[row] * factor[column];
  }
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 2
    for (int column = 0; column < Columns; ++column) {
      float* target = to + (row * 2 + column) * W;
      store<W>(target, first ? sums[row][column] : load<W>(target) + sums[row][column]);
    }
}

template <int W, int Rows, int Columns>
void accumulate_slabs(const float* data, const float* grad, int64_t count, bool first, float* to) {
  for (int64_t begin = 0; begin < count; begin += slab)
    accumulate_rows<W, Rows, Columns>(data + begin * W, grad + begin * W, count - begin < slab ? count - begin : slab,
                                      count * W, first && begin == 0, to);
}

template <int W>
void accumulate(const TransformedTiles& data, const TransformedTiles& grad, const Panels& panels, int64_t panel,
                int64_t begin, int64_t end, bool first, float* sums) {
  constexpr int rows = W / 2;
  const int64_t vectors = panels.vectors(panel), filter = panel * panels.panel_filters();
  for (int64_t frequency = begin; frequency < end; ++frequency) {
    const float* columns = grad.data + (frequency * grad.frequency_stride() + filter * grad.count);
    for (int64_t channel = 0; channel < panels.channels; channel += rows) {
      const float* from =
          data.data + (frequency * data.frequency_stride() + channel / W * W * data.count + channel % W);
      float* to = sums + (frequency * panels.frequency_stride() + channel * panels.panel_filters());
      if (vectors == 2)
        accumulate_slabs<W, rows, 2>(from, columns, data.count, first, to);
      else
        accumulate_slabs<W, rows, 1>(from, columns, data.count, first, to);
    }
  }
}

// ---- Bias -----------------------------------------------------------------------------------------------------------

// Summed by rows, images, then all: the error of a long sum grows with its length.
template <int W>
void sum_channels(const float* data, const Strides& strides, int64_t images, int64_t first, float* sums) {
  const bool has_vectors = strides.has_vectors(W);
  Vector<W> total{};
  for (int64_t image = 0; image < images; ++image) {
    Vector<W> image_sum{};
    for (int64_t y = 0; y < strides.height; ++y) {
      Vector<W> row_sum{};
      for (int64_t x = 0; x < strides.width; ++x) {
        const float* from = data + (image * strides.image + y * strides.row + x * strides.pixel);
        if (has_vectors)
          row_sum += load<W>(from + strides.channel(first));
        else
          for (int lane = 0; lane < W; ++lane) row_sum[lane] += from[strides.channel(first + lane)];
      }
      image_sum += row_sum;
    }
    total += image_sum;
  }
  store<W>(sums, total);
}

template <int W>
constexpr Kernels kernels_of() {
  return {W,           most_rows<W>,  transform_data<W>,        transform_grad<W>, transform_weights<W>,
          multiply<W>, accumulate<W>, transform_weight_grad<W>, sum_channels<W>};
}

}  // namespace symbind::cpu_backend::winograd
