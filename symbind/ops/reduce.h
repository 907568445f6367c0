// Sums and means over axes.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

struct Sum {
  std::optional<Tuple> axis = std::nullopt;  // none, or an empty tuple: all
  bool keepdims = false;
  bool exclude = false;
};
inline constexpr Builder<Sum> sum;

struct Mean {
  std::optional<Tuple> axis = std::nullopt;
  bool keepdims = false;
  bool exclude = false;
};
inline constexpr Builder<Mean> mean;

// The gradient of sum and mean: (out_grad, data) → out_grad spread over the axes summed away; of data only the shape.
struct SumGrad : Sum {};
inline constexpr Builder<SumGrad> sum_grad;
struct MeanGrad : Mean {};
inline constexpr Builder<MeanGrad> mean_grad;

// For each axis of a `rank`-dimensional array: is it summed away?
std::vector<bool> reduced_axes(const std::optional<Tuple>& axis, bool exclude, int rank, std::string_view who);

void register_reduce(OpRegistry& registry);

}  // namespace symbind
