// Images sampled at coordinates that a network computes, and grids of such coordinates; and the correlation of patches
// of two images.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

// Coordinates are (x, y) from -1, the first column or row, to 1, the last one.
struct GridGenerator {
  Required<std::string> transform_type = {};
  Tuple target_shape = {0, 0};
};
inline constexpr Builder<GridGenerator> grid_generator;

struct BilinearSampler {
  std::optional<bool> cudnn_off = {};
};
inline constexpr Builder<BilinearSampler> bilinear_sampler;

struct SpatialTransformer {
  Tuple target_shape = {0, 0};
  Required<std::string> transform_type = {};
  Required<std::string> sampler_type = {};
  std::optional<bool> cudnn_off = {};
};
inline constexpr Builder<SpatialTransformer> spatial_transformer;

struct Correlation {
  int64_t kernel_size = 1;       // of the patches compared, odd
  int64_t max_displacement = 1;  // of the second patch from the first
  int64_t stride1 = 1;           // between the first patches
  int64_t stride2 = 1;           // between the displacements
  int64_t pad_size = 0;
  bool is_multiply = true;  // the mean product, or else the mean distance
};
inline constexpr Builder<Correlation> correlation;

// (out_grad, data for its shape) → data_grad
struct GridGeneratorGrad : GridGenerator {};
inline constexpr Builder<GridGeneratorGrad> grid_generator_grad;
// (out_grad, data, grid) → data_grad, grid_grad
struct BilinearSamplerGrad : BilinearSampler {};
inline constexpr Builder<BilinearSamplerGrad> bilinear_sampler_grad;

// (out_grad, data, loc) → data_grad, loc_grad
struct SpatialTransformerGrad : SpatialTransformer {};
inline constexpr Builder<SpatialTransformerGrad> spatial_transformer_grad;

// (out_grad, data1, data2) → data1_grad, data2_grad
struct CorrelationGrad : Correlation {};
inline constexpr Builder<CorrelationGrad> correlation_grad;

}  // namespace symbind
