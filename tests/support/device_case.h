// One operator on a GPU against the CPU: the same arrays, the same seed.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "symbind/graph/op.h"
#include "symbind/passes/graph.h"

#include "tests/support/arrays.h"

namespace symbind::testing {

inline const std::vector<DType> float_types = {DType::float32, DType::float64, DType::float16, DType::bfloat16};
inline const std::vector<DType> integer_types = {DType::uint8, DType::int8, DType::int32, DType::int64, DType::boolean};
inline const std::vector<DType> all_types = {DType::float32,  DType::float64, DType::float16,
                                             DType::bfloat16, DType::int32,   DType::int64,
                                             DType::int8,     DType::uint8,   DType::boolean};

struct DeviceCase {
  std::string op;
  std::vector<Shape> inputs;
  Attributes attributes = {};
  std::vector<DType> dtypes = float_types;
  double low = -2, high = 2;
  double slack = 1;
  bool is_train = true;
  // Types of single inputs where they differ from the case's.
  std::vector<DType> input_types = {};
  // Instead of attributes, for operators that only passes create.
  std::shared_ptr<const void> params = nullptr;

  DType type_of(size_t input, DType dtype) const {
    return input < input_types.size() && input_types[input] != DType::none ? input_types[input] : dtype;
  }
};
std::ostream& operator<<(std::ostream& out, const DeviceCase& tried);

// Compares outputs and auxiliary states; fails if the operator runs on the host.
void compare_devices(const DeviceCase& tried, DType dtype);
void compare_devices(const std::vector<DeviceCase>& cases);

// Does the GPU have its own implementation that accepts the cases? Runs them only on the CPU, and so needs no GPU, but
// a build with CUDA: see built_with_cuda.
void expect_accepted(const std::vector<DeviceCase>& cases);
bool built_with_cuda();

// The kernel a GPU builds when the arrays of these numbers are channels-last, against the CPU's on plain ones.
void compare_channels_last(const DeviceCase& tried, DType dtype, const std::vector<size_t>& inputs,
                           const std::vector<size_t>& outputs);

}  // namespace symbind::testing
