// Position-sensitive pooling of regions: each cell of a region's grid reads its own channel.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// The mean of each cell.
struct PSROIPooling {
  Required<double> spatial_scale = {};  // from the coordinates of regions to those of data
  Required<int64_t> output_dim = {};    // channels of the output
  Required<int64_t> pooled_size = {};   // rows and columns of the output
  int64_t group_size = 0;               // rows and columns of the grid of channels; 0: pooled_size
};
inline constexpr Builder<PSROIPooling> psroi_pooling;

// The mean of interpolated points of each cell, where each cell is shifted by an offset that the network computes.
struct DeformablePSROIPooling {
  Required<double> spatial_scale = {};
  Required<int64_t> output_dim = {};
  Required<int64_t> group_size = {};
  Required<int64_t> pooled_size = {};
  int64_t part_size = 0;        // rows and columns of the grid of offsets; 0: pooled_size
  int64_t sample_per_part = 1;  // points of a cell along each axis
  double trans_std = 0;         // the unit of the offsets, as a fraction of the region
  bool no_trans = false;
};
inline constexpr Builder<DeformablePSROIPooling> deformable_psroi_pooling;

// (out_grad, rois, data for its shape) → data_grad
struct PSROIPoolingGrad : PSROIPooling {};
inline constexpr Builder<PSROIPoolingGrad> psroi_pooling_grad;

// (out_grad, data, rois) → data_grad, or with offsets (out_grad, data, rois, trans) → data_grad, trans_grad
struct DeformablePSROIPoolingGrad : DeformablePSROIPooling {};
inline constexpr Builder<DeformablePSROIPoolingGrad> deformable_psroi_pooling_grad;

}  // namespace symbind
