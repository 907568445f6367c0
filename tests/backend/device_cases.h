// The cases of single files in which operators of a GPU are compared with the CPU's.
#pragma once

#include <vector>

#include "tests/support/device_case.h"

namespace symbind::testing {

inline const std::vector<DType> all_types = {DType::float32,  DType::float64, DType::float16,
                                             DType::bfloat16, DType::int32,   DType::int64,
                                             DType::int8,     DType::uint8,   DType::boolean};

std::vector<DeviceCase> reduction_cases();      // cuda_reduce_test.cc
std::vector<DeviceCase> normalization_cases();  // cuda_normalize_test.cc
std::vector<DeviceCase> loss_cases();           // cuda_loss_test.cc
std::vector<DeviceCase> update_cases();         // cuda_update_test.cc
std::vector<DeviceCase> random_cases();         // cuda_random_test.cc

}  // namespace symbind::testing
