// The innermost loops of depthwise convolutions. Vectors run along the rows of one channel of one image (a plane).
// Compiled for several instruction sets and chosen at run time.
#pragma once

#include <cstdint>
#include <vector>

namespace symbind::cpu_backend::depthwise {

// Vectors may be read and written up to this many elements past the end.
inline constexpr int64_t slack = 16;

// The outputs of a plane, and the steps in the source from one to the next.
struct Grid {
  int64_t depth, rows, columns;
  int64_t depth_step, row_step;
};

// What one kernel position reads: source[offset + …].
struct Taps {
  const int64_t* offsets;
  int64_t count;
};

// The rows of a plane that are copied into a larger one: `count` elements, `stride` apart in the plane, from `from` on
// are copied to `to`.
struct RowCopy {
  int64_t from, to, count;
};

// One product of a small plane: an element of the source and a weight, by index.
struct Product {
  int32_t source, weight;
};
// Output i sums the products [ends[i - 1], ends[i]).
struct Products {
  std::vector<Product> list;
  std::vector<int32_t> ends;
  std::vector<int32_t> weights;  // the positions of the kernel that are read at all
};
inline constexpr int64_t plane_lanes = 16;  // number of small planes that are convolved together

struct Kernels {
  // to = start + Σ weights[k] · source[offsets[k] + …] for every output, row after row without gaps.
  void (*convolve)(const Grid& grid, const float* source, const Taps& taps, const float* weights, float start,
                   float* to);
  // The same for plane_lanes planes, number i of all planes adjacent in each array.
  void (*convolve_together)(const Products& products, const float* source, const float* weights, const float* start,
                            float* to);
  // sums[k] += Σ grad · source[offsets[k] + …] over all outputs. Rows of the gradient are `grad_step` apart; after the
  // columns of each are zeros up to a multiple of dot_lanes(columns), and the source must be finite there.
  void (*dots)(const Grid& grid, const float* grad, int64_t grad_step, const float* source, const Taps& taps,
               double* sums);
  int64_t (*dot_lanes)(int64_t columns);
  double (*sum)(const float* data, int64_t count);
  void (*copy_rows)(const std::vector<RowCopy>& rows, int64_t stride, const float* from, float* to);
  // data = max(data + added, 0); `added` may be null.
  void (*finish)(float* data, const float* added, bool relu, int64_t count);
};

const Kernels& kernels();

}  // namespace symbind::cpu_backend::depthwise
