// Images read at places a network has computed: grids of places, and what stands there.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

// Places are (x, y) from -1, the first column or row, to 1, the last one.
struct GridGenerator {
  std::string transform_type = required;
  Tuple target_shape = {0, 0};
};
inline constexpr Builder<GridGenerator> grid_generator;

struct BilinearSampler {
  std::optional<bool> cudnn_off = {};
};
inline constexpr Builder<BilinearSampler> bilinear_sampler;

struct SpatialTransformer {
  Tuple target_shape = {0, 0};
  std::string transform_type = required;
  std::string sampler_type = required;
  std::optional<bool> cudnn_off = {};
};
inline constexpr Builder<SpatialTransformer> spatial_transformer;

// (out_grad, data for its shape) → data_grad
struct GridGeneratorGrad : GridGenerator {};
inline constexpr Builder<GridGeneratorGrad> grid_generator_grad;
// (out_grad, data, grid) → data_grad, grid_grad
struct BilinearSamplerGrad : BilinearSampler {};
inline constexpr Builder<BilinearSamplerGrad> bilinear_sampler_grad;

// (out_grad, data, loc) → data_grad, loc_grad
struct SpatialTransformerGrad : SpatialTransformer {};
inline constexpr Builder<SpatialTransformerGrad> spatial_transformer_grad;

void register_spatial(OpRegistry& registry);

}  // namespace symbind
