#include "symbind/ops/spatial.h"

#include <algorithm>
#include <cmath>

#include "symbind/backend/cpu/bilinear.h"
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
