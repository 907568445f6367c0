// Sums, means, extrema and products over axes, and the indices of extrema.
#pragma once

#include "symbind/core/fixed_string.h"
#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Sum {
  TupleOrNone axis = {};  // none, or an empty tuple: all
  bool keepdims = false;
  bool exclude = false;
};
inline constexpr Builder<Sum> sum;

struct Mean {
  TupleOrNone axis = {};
  bool keepdims = false;
  bool exclude = false;
};
inline constexpr Builder<Mean> mean;

// The nan… forms ignore NaN.
template <FixedString name>
struct Reduce {
  TupleOrNone axis = {};
  bool keepdims = false;
  bool exclude = false;
};
inline constexpr Builder<Reduce<"max">> max;
inline constexpr Builder<Reduce<"min">> min;
inline constexpr Builder<Reduce<"prod">> prod;
inline constexpr Builder<Reduce<"nansum">> nansum;
inline constexpr Builder<Reduce<"nanprod">> nanprod;

struct Norm {
  int64_t ord = 2;  // the sum of magnitudes (1), or the root of the sum of squares (2)
  TupleOrNone axis = {};
  std::optional<DType> out_dtype = std::nullopt;
  bool keepdims = false;
};
inline constexpr Builder<Norm> norm;

// The index of the first extreme along an axis, or in the whole array, in the type of data.
template <FixedString name>
struct ArgReduce {
  std::optional<int64_t> axis = std::nullopt;
  bool keepdims = false;
};
inline constexpr Builder<ArgReduce<"argmax">> argmax;
inline constexpr Builder<ArgReduce<"argmin">> argmin;
struct ArgmaxChannel {};
inline constexpr Builder<ArgmaxChannel> argmax_channel;

// The gradient of sum and mean: (out_grad, data) → out_grad broadcast over the reduced axes; only the shape of data is
// read.
struct SumGrad : Sum {};
inline constexpr Builder<SumGrad> sum_grad;
struct MeanGrad : Mean {};
inline constexpr Builder<MeanGrad> mean_grad;

// For each axis of a `rank`-dimensional array: is it reduced?
std::vector<bool> reduced_axes(const std::optional<Tuple>& axis, bool exclude, const Shape& data, std::string_view who);

}  // namespace symbind
