// The functions of Activation and their slopes, for device code.
#pragma once

#include <string_view>

#include "symbind/backend/pointwise.h"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {

struct Softrelu {
  template <class T>
  __device__ T operator()(T x) const {  // log(1 + exp x), without overflow
    return (x > T(0) ? x : T(0)) + log1p(exp(-fabs(x)));
  }
};
struct SoftreluGrad {
  template <class T>
  __device__ T operator()(T dy, T y) const {
    return dy * (T(1) - exp(-y));
  }
};
struct Softsign {
  template <class T>
  __device__ T operator()(T x) const {
    return x / (T(1) + fabs(x));
  }
};
struct SoftsignGrad {  // of (dy, x)
  template <class T>
  __device__ T operator()(T dy, T x) const {
    const T below = T(1) + fabs(x);
    return dy / (below * below);
  }
};

// Calls use(function) with the function of that name.
template <class Use>
decltype(auto) with_activation(std::string_view type, Use&& use) {
  if (type == "relu") return use(pointwise::Relu{});
  if (type == "sigmoid") return use(pointwise::Sigmoid{});
  if (type == "softrelu") return use(Softrelu{});
  if (type == "softsign") return use(Softsign{});
  if (type == "tanh") return use(pointwise::Tanh{});
  fail("there is no activation ", type);
}
template <class Use>
decltype(auto) with_activation_grad(std::string_view type, Use&& use) {
  if (type == "relu") return use(pointwise::ReluGrad{});
  if (type == "sigmoid") return use(pointwise::SigmoidGrad{});
  if (type == "softrelu") return use(SoftreluGrad{});
  if (type == "softsign") return use(SoftsignGrad{});
  if (type == "tanh") return use(pointwise::TanhGrad{});
  fail("there is no activation ", type);
}

}  // namespace symbind::cuda_backend
