// Softmax and its relatives along one axis.
#pragma once

#include "symbind/core/fixed_string.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

// With use_length a second input holds the number of valid elements of each row; the others become zero.
template <FixedString name>
struct SoftmaxLike {
  int64_t axis = -1;
  std::optional<double> temperature = std::nullopt;  // the data is divided by it
  std::optional<DType> dtype = std::nullopt;         // of the result
  std::optional<bool> use_length = false;
};
inline constexpr Builder<SoftmaxLike<"softmax">> softmax;
inline constexpr Builder<SoftmaxLike<"log_softmax">> log_softmax;
inline constexpr Builder<SoftmaxLike<"softmin">> softmin;  // softmax of -data

// (out_grad, output, data for its type[, length]) → data_grad
inline constexpr Builder<SoftmaxLike<"_backward_softmax">> softmax_grad;
inline constexpr Builder<SoftmaxLike<"_backward_log_softmax">> log_softmax_grad;
inline constexpr Builder<SoftmaxLike<"_backward_softmin">> softmin_grad;

struct SoftmaxActivation {
  std::string mode = "instance";  // along the last axis; channel: along axis 1
};
inline constexpr Builder<SoftmaxActivation> softmax_activation;

}  // namespace symbind
