#include "symbind/ops/spatial.h"

#include <algorithm>
#include <cmath>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/backend/spatial.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace spatial;

// ---- Grids ----------------------------------------------------------------------------------------------------------

template <class C>
void write_affine(const Grid& grid, const C* matrices, C* coordinates) {
  parallel_for(
      grid.images * 2 * grid.rows, element_grain / 4 / (grid.columns + 1) + 1, [=](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const C* const factors = matrices + line / grid.rows * 3;
          const C rest = factors[1] * coordinate<C>(line % grid.rows, grid.rows) + factors[2];
          for (int64_t column = 0; column < grid.columns; ++column)
            coordinates[line * grid.columns + column] = factors[0] * coordinate<C>(column, grid.columns) + rest;
        }
      });
}

template <class C>
void sum_affine(const Grid& grid, const C* coordinates_grad, C* matrices_grad) {
  parallel_for(grid.images * 2, element_grain / 4 / (grid.space() + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      double by_x = 0, by_y = 0, by_one = 0;
      for (int64_t i = 0; i < grid.space(); ++i) {
        const auto dy = static_cast<double>(coordinates_grad[plane * grid.space() + i]);
        by_x += dy * coordinate<double>(i % grid.columns, grid.columns);
        by_y += dy * coordinate<double>(i / grid.columns, grid.rows);
        by_one += dy;
      }
      matrices_grad[plane * 3] = static_cast<C>(by_x);
      matrices_grad[plane * 3 + 1] = static_cast<C>(by_y);
      matrices_grad[plane * 3 + 2] = static_cast<C>(by_one);
    }
  });
}

// body(element, pixel it is on along its axis, half of the distance from the first to the last)
template <class C, class Body>
void for_flow(const Grid& grid, const Body& body) {
  for_elements(grid.images * 2 * grid.space(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t inside = i % grid.space();
      const bool down = i / grid.space() % 2 == 1;
      const C half = static_cast<C>((down ? grid.rows : grid.columns) - 1) / 2;
      body(i, static_cast<C>(down ? inside / grid.columns : inside % grid.columns), half);
    }
  });
}

std::unique_ptr<Kernel> build_grid(const NodeView& node) {
  const bool affine = node.as<GridGenerator>().transform_type == "affine";
  return widened_kernel(node, [affine, grid = grid_of(node.outputs[0].shape)](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      if (affine) return write_affine(grid, in[0], out[0]);
      for_flow<C>(grid, [flow = in[0], coordinates = out[0]](int64_t i, C pixel, C half) {
        coordinates[i] = (flow[i] + pixel) / half - 1;
      });
    };
  });
}

std::unique_ptr<Kernel> build_grid_grad(const NodeView& node) {
  const bool affine = node.as<GridGeneratorGrad>().transform_type == "affine";
  return widened_kernel(node, [affine, grid = grid_of(node.inputs[0].shape)](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      if (affine) return sum_affine(grid, in[0], out[0]);
      for_flow<C>(grid, [dy = in[0], dx = out[0]](int64_t i, C, C half) { dx[i] = dy[i] / half; });
    };
  });
}

// ---- Sampling -------------------------------------------------------------------------------------------------------

// The pixels of an image that some positions of the grid read, four each. One outside the image has weight and
// derivatives 0 and the index of another pixel.
template <class C>
struct Readings {
  static constexpr int64_t most = 256;
  int64_t count = 0;
  int64_t pixel[4][most];
  C weight[4][most], slope_x[4][most], slope_y[4][most];

  // Positions [begin, begin + most) of the grid of an image, as far as there are any.
  Readings(const Sampled& size, const C* grid, int64_t image, int64_t begin)
      : count(std::min(most, size.grid.space() - begin)) {
    const C* const own = grid + image * 2 * size.grid.space() + begin;
    for (int64_t i = 0; i < count; ++i) {
      for (int k = 0; k < 4; ++k) pixel[k][i] = 0, weight[k][i] = slope_x[k][i] = slope_y[k][i] = 0;
      int next = 0;
      SamplePoint<C>(size, own[i], own[i + size.grid.space()])
          .for_pixels(size, [&](int64_t at, C share, C by_x, C by_y) {
            pixel[next][i] = at;
            weight[next][i] = share;
            slope_x[next][i] = by_x;
            slope_y[next][i] = by_y;
            ++next;
          });
    }
  }
};

// A product that is 0 if the weight is: a pixel outside the image must not turn it into NaN.
template <class C>
C weighted(C weight, C value) {
  return weight == C(0) ? C(0) : weight * value;
}

// Calls body(readings, first position, plane) for planes [begin, end), counted over images and channels, and all
// positions: readings are computed once for the planes of an image.
template <class C, class Body>
void for_planes(const Sampled& size, const C* grid, int64_t begin, int64_t end, const Body& body) {
  while (begin < end) {
    const int64_t image = begin / size.channels, last = std::min(end, (image + 1) * size.channels);
    for (int64_t at = 0; at < size.grid.space(); at += Readings<C>::most) {
      const Readings<C> readings(size, grid, image, at);
      for (int64_t plane = begin; plane < last; ++plane) body(readings, at, plane);
    }
    begin = last;
  }
}

template <class C>
void sample(const Sampled& size, const C* x, const C* grid, C* y) {
  const int64_t result = size.grid.space();
  if (size.space() == 0) {  // readings have no pixel to refer to
    std::fill_n(y, size.grid.images * size.channels * result, C(0));
    return;
  }
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
void sum_data_grad(const Sampled& size, const C* dy, const C* grid, C* dx) {
  const int64_t result = size.grid.space();
  if (size.space() == 0) return;
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
void write_grid_grad(const Sampled& size, const C* dy, const C* x, const C* grid, C* grid_grad) {
  constexpr int64_t most = Readings<C>::most;
  const int64_t result = size.grid.space(), pieces = (result + most - 1) / most;
  if (size.space() == 0) {
    std::fill_n(grid_grad, size.grid.images * 2 * result, C(0));
    return;
  }
  parallel_for(size.grid.images * pieces, element_grain / 16 / ((size.channels + 1) * most) + 1,
               [=](int64_t begin, int64_t end) {
                 for (int64_t piece = begin; piece < end; ++piece) {
                   const int64_t image = piece / pieces, at = piece % pieces * most;
                   const Readings<C> read(size, grid, image, at);
                   C sums[4][most] = {};
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

std::unique_ptr<Kernel> build_sampler(const NodeView& node) {
  return widened_kernel(node, [size = sampled(node.inputs[0].shape, node.outputs[0].shape)](auto type) {
    using C = typename decltype(type)::type;
    return [size](const C* const* in, C* const* out) { sample(size, in[0], in[1], out[0]); };
  });
}

std::unique_ptr<Kernel> build_sampler_grad(const NodeView& node) {
  return widened_kernel(node, [size = sampled(node.inputs[1].shape, node.inputs[0].shape)](auto type) {
    using C = typename decltype(type)::type;
    return [size](const C* const* in, C* const* out) {
      sum_data_grad(size, in[0], in[2], out[0]);
      write_grid_grad(size, in[0], in[1], in[2], out[1]);
    };
  });
}

std::unique_ptr<Kernel> build_transformer(const NodeView& node) {
  const Sampled size = sampled(node.inputs[0].shape, node.outputs[0].shape);
  return widened_kernel(
      node,
      [size](auto type) {
        using C = typename decltype(type)::type;
        return [size](const C* const* in, C* const* out) {
          write_affine(size.grid, in[1], out[1]);
          sample(size, in[0], out[1], out[0]);
        };
      },
      2 * size.grid.images * size.grid.space() + 1);
}

std::unique_ptr<Kernel> build_transformer_grad(const NodeView& node) {
  const Sampled size = sampled(node.inputs[1].shape, node.inputs[0].shape);
  const int64_t grid_size = 2 * size.grid.images * size.grid.space();
  return widened_kernel(
      node,
      [size, grid_size](auto type) {
        using C = typename decltype(type)::type;
        return [size, grid_size](const C* const* in, C* const* out) {
          C *const grid = out[2], *const grid_grad = grid + grid_size;
          write_affine(size.grid, in[2], grid);
          sum_data_grad(size, in[0], grid, out[0]);
          write_grid_grad(size, in[0], in[1], grid, grid_grad);
          sum_affine(size.grid, grid_grad, out[1]);
        };
      },
      2 * grid_size + 1);
}

// ---- Correlation ----------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build_correlation(const NodeView& node) {
  const Compared size(node.as<Correlation>(), node.inputs[0].shape, node.outputs[0].shape);
  return widened_kernel(node, [size](auto type) {
    using C = typename decltype(type)::type;
    return [size](const C* const* in, C* const* out) {
      const int64_t planes = size.displacements(), result = size.grid.space(),
                    image_size = size.channels * size.space();
      parallel_for(size.grid.images * planes, 1, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane)
          for (int64_t i = 0; i < result; ++i) {
            double sum = 0;
            size.for_pairs(plane % planes, i, [&](int64_t first, int64_t second) {
              for (int64_t at = plane / planes * image_size; at < (plane / planes + 1) * image_size;
                   at += size.space()) {
                const double a = first < 0 ? 0 : static_cast<double>(in[0][at + first]);
                const double b = second < 0 ? 0 : static_cast<double>(in[1][at + second]);
                sum += size.params.is_multiply ? a * b : std::abs(a - b);
              }
            });
            out[0][plane * result + i] = static_cast<C>(sum / size.elements());
          }
      });
    };
  });
}

// Each thread processes some channels of an image, with all displacements.
std::unique_ptr<Kernel> build_correlation_grad(const NodeView& node) {
  const Compared size(node.as<CorrelationGrad>(), node.inputs[1].shape, node.inputs[0].shape);
  return widened_kernel(node, [size](auto type) {
    using C = typename decltype(type)::type;
    return [size](const C* const* in, C* const* out) {
      const int64_t planes = size.displacements(), result = size.grid.space();
      parallel_for(size.grid.images * size.channels, 1, [&](int64_t begin, int64_t end) {
        for (int side : {0, 1}) std::fill(out[side] + begin * size.space(), out[side] + end * size.space(), C(0));
        for (int64_t channel = begin; channel < end; ++channel) {
          const C *const a = in[1] + channel * size.space(), *const b = in[2] + channel * size.space();
          C *const da = out[0] + channel * size.space(), *const db = out[1] + channel * size.space();
          const C* const dy = in[0] + channel / size.channels * planes * result;
          for (int64_t all = 0; all < planes * result; ++all) {
            const C slope = dy[all] / static_cast<C>(size.elements());
            size.for_pairs(all / result, all % result, [&](int64_t first, int64_t second) {
              const C x = first < 0 ? C(0) : a[first], y = second < 0 ? C(0) : b[second];
              const C sign = x >= y ? slope : -slope;
              if (first >= 0) da[first] += size.params.is_multiply ? slope * y : sign;
              if (second >= 0) db[second] += size.params.is_multiply ? slope * x : -sign;
            });
          }
        }
      });
    };
  });
}

}  // namespace

void add_spatial(ImplementationTable& table) {
  add_plain<GridGenerator>(table, build_grid);
  add_plain<GridGeneratorGrad>(table, build_grid_grad);
  add_plain<BilinearSampler>(table, build_sampler);
  add_plain<BilinearSamplerGrad>(table, build_sampler_grad);
  add_plain<SpatialTransformer>(table, build_transformer);
  add_plain<SpatialTransformerGrad>(table, build_transformer_grad);
  add_plain<Correlation>(table, build_correlation);
  add_plain<CorrelationGrad>(table, build_correlation_grad);
}

}  // namespace symbind::cpu_backend
