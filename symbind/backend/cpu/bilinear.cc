// Several channels of an image are read together: they are transposed so that each pixel is a vector of channels, and
// what the points read of it is transposed back. Images of few channels are read plane by plane.
#include "symbind/backend/cpu/bilinear.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/transpose.h"

namespace symbind::cpu_backend {
namespace {

using spatial::Sampled;
using spatial::SamplePoint;

constexpr int64_t points = 256;  // that are read together
constexpr int64_t lanes = 16;    // channels that are read together

// What some points of the grid read of an image: four pixels each. One that is outside of the image has weight and
// slopes 0 and the index `nowhere`.
template <class C>
struct Readings {
  int64_t count = 0;
  int64_t pixel[4][points];
  C weight[4][points], slope_x[4][points], slope_y[4][points];

  // Points [begin, begin + points) of the grid of an image, as far as there are any.
  Readings(const Sampled& size, const C* grid, int64_t image, int64_t begin, int64_t nowhere)
      : count(std::min(points, size.grid.space() - begin)) {
    const C* const own = grid + image * 2 * size.grid.space() + begin;
    for (int64_t i = 0; i < count; ++i) {
      const SamplePoint<C> point(size, own[i], own[i + size.grid.space()]);
      for (int64_t k = 0; k < 4; ++k) {
        const bool there = point.inside && point.has_row(size, k / 2) && point.has_column(size, k % 2);
        const auto read = point.pixel(size, k / 2, k % 2);
        pixel[k][i] = there ? read.at : nowhere;
        weight[k][i] = there ? read.weight : C(0);
        slope_x[k][i] = there ? read.slope_x : C(0);
        slope_y[k][i] = there ? read.slope_y : C(0);
      }
    }
  }
};

// A product that is 0 if the weight is: a pixel that is not there must not turn it into NaN.
template <class C>
C weighted(C weight, C value) {
  return weight == C(0) ? C(0) : weight * value;
}

// ---- Channels together ----------------------------------------------------------------------------------------------

bool has_many_channels(const Sampled& size) { return size.channels >= lanes / 2; }

template <class C>
struct Vector {
  C channel[lanes];
};

// Some channels of an image, up to `lanes` of them.
struct Channels {
  int64_t image, first, count;
  Channels(const Sampled& size, int64_t block)
      : image(block / blocks(size)),
        first(image * size.channels + block % blocks(size) * lanes),
        count(std::min(lanes, (image + 1) * size.channels - first)) {}
  static int64_t blocks(const Sampled& size) { return (size.channels + lanes - 1) / lanes; }

  // to[i] = the channels at element i of planes of `step` elements; channels that are not there are 0.
  template <class C>
  void take(const C* planes, int64_t step, int64_t begin, int64_t elements, Vector<C>* to) const {
    if (count < lanes) std::fill_n(to->channel, elements * lanes, C(0));
    transpose_block(planes + first * step + begin, step, to->channel, lanes, count, elements);
  }
  template <class C>
  void put(const Vector<C>* from, C* planes, int64_t step, int64_t begin, int64_t elements) const {
    transpose_block(from->channel, lanes, planes + first * step + begin, step, elements, count);
  }
};

template <class C>
void add_product(Vector<C>& sum, C weight, const Vector<C>& value) {
  for (int64_t j = 0; j < lanes; ++j) sum.channel[j] += weight * value.channel[j];
}

// sums[i] += factor · the sum of the channels of vectors[i]
template <class C>
void add_channels(const Vector<C>* vectors, int64_t count, C factor, C* sums) {
  C planes[lanes][points];
  transpose_block(vectors->channel, lanes, planes[0], points, count, lanes);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j)
      for (int64_t i = 0; i < count; ++i) planes[j][i] += planes[j + half][i];
  for (int64_t i = 0; i < count; ++i) sums[i] += factor * planes[0][i];
}

// Calls body(channels, pixels, read, begin) for the points of each of the blocks of channels [first, last); `pixels` is
// space for an image, and behind it one that is zero. `before` and `after` are called with the first two.
template <class C, class Before, class Body, class After>
void for_blocks(const Sampled& size, const C* grid, int64_t first, int64_t last, const Before& before, const Body& body,
                const After& after) {
  std::vector<Vector<C>> pixels(static_cast<size_t>(size.space() + 1));
  for (int64_t block = first; block < last; ++block) {
    const Channels channels(size, block);
    before(channels, pixels.data());
    pixels.back() = {};
    for (int64_t at = 0; at < size.grid.space(); at += points)
      body(channels, pixels.data(), Readings<C>(size, grid, channels.image, at, size.space()), at);
    after(channels, pixels.data());
  }
}

// The grain of loops over blocks of channels.
int64_t block_grain(const Sampled& size) {
  return element_grain / 16 / (lanes * (size.grid.space() + size.space())) + 1;
}

template <class C>
void sample_together(const Sampled& size, const C* x, const C* grid, C* y) {
  for_elements(
      size.grid.images * Channels::blocks(size),
      [=](int64_t first, int64_t last) {
        for_blocks(
            size, grid, first, last,
            [=](const Channels& channels, Vector<C>* pixels) {
              channels.take(x, size.space(), 0, size.space(), pixels);
            },
            [=](const Channels& channels, const Vector<C>* pixels, const Readings<C>& read, int64_t at) {
              Vector<C> results[points];
              for (int64_t i = 0; i < read.count; ++i) {
                Vector<C> sum{};
                for (int k = 0; k < 4; ++k) add_product(sum, read.weight[k][i], pixels[read.pixel[k][i]]);
                results[i] = sum;
              }
              channels.put(results, y, size.grid.space(), at, read.count);
            },
            [](const Channels&, Vector<C>*) {});
      },
      block_grain(size));
}

template <class C>
void sum_data_grad_together(const Sampled& size, const C* dy, const C* grid, C* dx) {
  for_elements(
      size.grid.images * Channels::blocks(size),
      [=](int64_t first, int64_t last) {
        for_blocks(
            size, grid, first, last,
            [=](const Channels&, Vector<C>* sums) { std::fill_n(sums, size.space(), Vector<C>{}); },
            [=](const Channels& channels, Vector<C>* sums, const Readings<C>& read, int64_t at) {
              Vector<C> gradients[points];
              channels.take(dy, size.grid.space(), at, read.count, gradients);
              for (int64_t i = 0; i < read.count; ++i)
                for (int k = 0; k < 4; ++k) add_product(sums[read.pixel[k][i]], read.weight[k][i], gradients[i]);
            },
            [=](const Channels& channels, const Vector<C>* sums) {
              channels.put(sums, dx, size.space(), 0, size.space());
            });
      },
      block_grain(size));
}

// Each task has all channels of an image.
template <class C>
void write_grid_grad_together(const Sampled& size, const C* dy, const C* x, const C* grid, C* grid_grad) {
  const int64_t result = size.grid.space(), blocks = Channels::blocks(size);
  const C half_width = static_cast<C>(size.columns - 1) / 2, half_height = static_cast<C>(size.rows - 1) / 2;
  std::fill_n(grid_grad, size.grid.images * 2 * result, C(0));
  for_elements(
      size.grid.images,
      [=](int64_t begin, int64_t end) {
        for_blocks(
            size, grid, begin * blocks, end * blocks,
            [=](const Channels& channels, Vector<C>* pixels) {
              channels.take(x, size.space(), 0, size.space(), pixels);
            },
            [=](const Channels& channels, const Vector<C>* pixels, const Readings<C>& read, int64_t at) {
              Vector<C> gradients[points];
              channels.take(dy, result, at, read.count, gradients);
              Vector<C> by_x[points], by_y[points];
              for (int64_t i = 0; i < read.count; ++i) {
                Vector<C> slope_x{}, slope_y{};
                for (int k = 0; k < 4; ++k) {
                  add_product(slope_x, read.slope_x[k][i], pixels[read.pixel[k][i]]);
                  add_product(slope_y, read.slope_y[k][i], pixels[read.pixel[k][i]]);
                }
                for (int64_t j = 0; j < lanes; ++j) by_x[i].channel[j] = slope_x.channel[j] * gradients[i].channel[j];
                for (int64_t j = 0; j < lanes; ++j) by_y[i].channel[j] = slope_y.channel[j] * gradients[i].channel[j];
              }
              C* const own = grid_grad + channels.image * 2 * result + at;
              add_channels(by_x, read.count, half_width, own);
              add_channels(by_y, read.count, half_height, own + result);
            },
            [](const Channels&, Vector<C>*) {});
      },
      block_grain(size) / blocks + 1);
}

// ---- Plane by plane -------------------------------------------------------------------------------------------------

// Calls body(readings, first point, plane) for planes [begin, end), counted over images and channels, and all points:
// readings are computed once for the planes of an image.
template <class C, class Body>
void for_planes(const Sampled& size, const C* grid, int64_t begin, int64_t end, const Body& body) {
  while (begin < end) {
    const int64_t image = begin / size.channels, last = std::min(end, (image + 1) * size.channels);
    for (int64_t at = 0; at < size.grid.space(); at += points) {
      const Readings<C> readings(size, grid, image, at, 0);
      for (int64_t plane = begin; plane < last; ++plane) body(readings, at, plane);
    }
    begin = last;
  }
}

template <class C>
void sample_planes(const Sampled& size, const C* x, const C* grid, C* y) {
  const int64_t result = size.grid.space();
  parallel_for(size.grid.images * size.channels, element_grain / 16 / (result + 1) + 1,
               [=](int64_t begin, int64_t end) {
                 for_planes(size, grid, begin, end, [=](const Readings<C>& read, int64_t at, int64_t plane) {
                   const C* const from = x + plane * size.space();
                   C* const to = y + plane * result + at;
                   for (int64_t i = 0; i < read.count; ++i)
                     to[i] = weighted(read.weight[0][i], from[read.pixel[0][i]]) +
                             weighted(read.weight[1][i], from[read.pixel[1][i]]) +
                             weighted(read.weight[2][i], from[read.pixel[2][i]]) +
                             weighted(read.weight[3][i], from[read.pixel[3][i]]);
                 });
               });
}

template <class C>
void sum_data_grad_planes(const Sampled& size, const C* dy, const C* grid, C* dx) {
  const int64_t result = size.grid.space();
  parallel_for(size.grid.images * size.channels, element_grain / 16 / (result + size.space() + 1) + 1,
               [=](int64_t begin, int64_t end) {
                 std::fill(dx + begin * size.space(), dx + end * size.space(), C(0));
                 for_planes(size, grid, begin, end, [=](const Readings<C>& read, int64_t at, int64_t plane) {
                   const C* const from = dy + plane * result + at;
                   C* const to = dx + plane * size.space();
                   for (int64_t i = 0; i < read.count; ++i)
                     for (int k = 0; k < 4; ++k) to[read.pixel[k][i]] += weighted(read.weight[k][i], from[i]);
                 });
               });
}

template <class C>
void write_grid_grad_planes(const Sampled& size, const C* dy, const C* x, const C* grid, C* grid_grad) {
  const int64_t result = size.grid.space(), pieces = (result + points - 1) / points;
  parallel_for(size.grid.images * pieces, element_grain / 16 / ((size.channels + 1) * points) + 1,
               [=](int64_t begin, int64_t end) {
                 for (int64_t piece = begin; piece < end; ++piece) {
                   const int64_t image = piece / pieces, at = piece % pieces * points;
                   const Readings<C> read(size, grid, image, at, 0);
                   C sums[4][points] = {};
                   for (int64_t plane = image * size.channels; plane < (image + 1) * size.channels; ++plane) {
                     const C *const from = dy + plane * result + at, *const pixels = x + plane * size.space();
                     for (int k = 0; k < 4; ++k)
                       for (int64_t i = 0; i < read.count; ++i) sums[k][i] += from[i] * pixels[read.pixel[k][i]];
                   }
                   C* const own = grid_grad + image * 2 * result + at;
                   for (int64_t i = 0; i < read.count; ++i) {
                     C by_x = 0, by_y = 0;
                     for (int k = 0; k < 4; ++k) {
                       by_x += weighted(read.slope_x[k][i], sums[k][i]);
                       by_y += weighted(read.slope_y[k][i], sums[k][i]);
                     }
                     own[i] = by_x * static_cast<C>(size.columns - 1) / 2;
                     own[i + result] = by_y * static_cast<C>(size.rows - 1) / 2;
                   }
                 }
               });
}

}  // namespace

// Readings have no pixel to begin with where images are empty.
template <class C>
void sample(const Sampled& size, const C* x, const C* grid, C* y) {
  if (size.space() == 0)
    std::fill_n(y, size.grid.images * size.channels * size.grid.space(), C(0));
  else if (has_many_channels(size))
    sample_together(size, x, grid, y);
  else
    sample_planes(size, x, grid, y);
}

template <class C>
void sum_data_grad(const Sampled& size, const C* dy, const C* grid, C* dx) {
  if (size.space() == 0) return;
  if (has_many_channels(size))
    sum_data_grad_together(size, dy, grid, dx);
  else
    sum_data_grad_planes(size, dy, grid, dx);
}

template <class C>
void write_grid_grad(const Sampled& size, const C* dy, const C* x, const C* grid, C* grid_grad) {
  if (size.space() == 0)
    std::fill_n(grid_grad, size.grid.images * 2 * size.grid.space(), C(0));
  else if (has_many_channels(size) && size.grid.images > 1)  // a single image is shared by threads
    write_grid_grad_together(size, dy, x, grid, grid_grad);
  else
    write_grid_grad_planes(size, dy, x, grid, grid_grad);
}

template void sample(const Sampled&, const float*, const float*, float*);
template void sample(const Sampled&, const double*, const double*, double*);
template void sum_data_grad(const Sampled&, const float*, const float*, float*);
template void sum_data_grad(const Sampled&, const double*, const double*, double*);
template void write_grid_grad(const Sampled&, const float*, const float*, const float*, float*);
template void write_grid_grad(const Sampled&, const double*, const double*, const double*, double*);

}  // namespace symbind::cpu_backend
