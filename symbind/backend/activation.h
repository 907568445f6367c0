// The functions of Activation as functions of numbers, shared by all backends. They are called with float and double.
#pragma once

#include <cmath>
#include <string_view>

#include "symbind/backend/pointwise.h"
#include "symbind/core/error.h"

namespace symbind::pointwise {

// log(1 + e^x), kept from overflow on one side and from losing e^x beside the one on the other. Above 20 it is x, as in
// MXNet.
struct SoftRelu {
  template <class T>
  constexpr T operator()(T x) const {
    const T small = vector_math::exp(x > T(0) ? -x : x), sum = T(1) + small;
    const T tail = sum == T(1) ? small : vector_math::log(sum) * small / (sum - T(1));
    return x > T(20) ? x : x > T(0) ? x + tail : tail;
  }
};
struct SoftSign {
  template <class T>
  constexpr T operator()(T x) const {
    return x / (T(1) + (x < T(0) ? -x : x));
  }
};
// Of (dy, y): the slope is 1 - e^-y.
struct SoftReluGrad {
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return dy * -std::expm1(-y);
  }
};
// Of (dy, x).
struct SoftSignGrad {
  template <class T>
  constexpr T operator()(T dy, T x) const {
    const T below = T(1) + (x < T(0) ? -x : x);
    return dy / (below * below);
  }
};

// Calls visit(function, gradient) for an act_type.
template <class Visit>
decltype(auto) visit_activation(std::string_view act_type, Visit&& visit) {
  if (act_type == "relu") return visit(Relu{}, ReluGrad{});
  if (act_type == "sigmoid") return visit(Sigmoid{}, SigmoidGrad{});
  if (act_type == "tanh") return visit(Tanh{}, TanhGrad{});
  if (act_type == "softrelu") return visit(SoftRelu{}, SoftReluGrad{});
  if (act_type == "softsign") return visit(SoftSign{}, SoftSignGrad{});
  fail("there is no activation '", act_type, "'");
}

}  // namespace symbind::pointwise
