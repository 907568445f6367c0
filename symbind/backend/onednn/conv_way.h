// Chooses the fastest of three ways to compute a convolution, by a time estimate of each.
#pragma once

#include "symbind/backend/cpu/conv_gemm.h"
#include "symbind/ops/conv.h"

namespace symbind::onednn {

// From plain activations oneDNN computes a product of matrices over unfolded patches; its best kernels take other
// layouts, which costs reorders. The third way is our own product over patches (backend/cpu/conv_gemm.cc), whose
// vectors run over positions: oneDNN's run over channels, and with few channels are mostly empty.
enum class Way { plain, reordered, patches };

// What is computed: outputs or a gradient. `results` and `read` are the channels of a group that are written and read.
struct ConvolutionWork {
  ConvolutionSize size;
  int64_t results, read, products, elements;
  bool of_data, of_weight;

  bool has_whole_blocks() const { return size.group_channels() % 16 == 0 && size.group_filters() % 16 == 0; }
  int64_t strided_outputs() const { return size.out_size() * size.stride[0] * size.stride[1] * size.stride[2]; }
  // Our product over patches refuses it.
  bool has_most_products_outside() const { return of_data && cpu_backend::has_most_products_outside(size); }
};

// How oneDNN computes from reordered activations, if it does: directly, or by products of small matrices (its
// "brgemm"), which read channels last without padding them.
enum class Reordered { unavailable, directly, by_small_products };

Way fastest_way(const ConvolutionWork& work, Reordered reordered);
// In half precision: `patches` is the fastest way in float32, plus conversions.
Way fastest_way_in_half(const ConvolutionWork& work, Reordered reordered);

}  // namespace symbind::onednn
