// Creation of arrays. The array functions zeros() and ones() are in core/ndarray.h; these are the operators.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Zeros {
  Tuple shape = {};  // 0: to be inferred
  std::string ctx = "";
  DType dtype = DType::float32;
};
struct Ones {
  Tuple shape = {};
  std::string ctx = "";
  DType dtype = DType::float32;
};

inline constexpr Builder<Zeros> make_zeros;
inline constexpr Builder<Ones> make_ones;

struct Full {
  Tuple shape = {};
  std::string ctx = "";
  DType dtype = DType::float32;
  std::optional<double> value = std::nullopt;  // required; optional because NaN is a valid value
};
inline constexpr Builder<Full> make_full;

// start, start + step, … before stop, each `repeat` times. Without a stop, start is the stop and 0 the start; or, with
// infer_range, there are as many numbers as the rest of the network needs.
struct Arange {
  Required<double> start = {};
  std::optional<double> stop = std::nullopt;
  double step = 1;
  int64_t repeat = 1;
  bool infer_range = false;
  std::string ctx = "";
  DType dtype = DType::float32;
};
inline constexpr Builder<Arange> make_arange;

struct Linspace {
  Required<double> start = {};
  Required<double> stop = {};
  Required<int64_t> num = {};
  bool endpoint = true;
  std::string ctx = "";
  DType dtype = DType::float32;
};
inline constexpr Builder<Linspace> make_linspace;

struct Eye {
  Required<int64_t> N = {};
  int64_t M = 0;  // 0: N
  int64_t k = 0;
  std::string ctx = "";
  DType dtype = DType::float32;
};
inline constexpr Builder<Eye> make_eye;

}  // namespace symbind
