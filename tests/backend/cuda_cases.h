// The cases of operators on a GPU against the CPU (tests/support/device_case.h), which are in files by subject.
#pragma once

#include <vector>

#include "tests/support/device_case.h"

namespace symbind::testing {

inline const std::vector<DType> all_types = {DType::float32,  DType::float64, DType::float16,
                                             DType::bfloat16, DType::int32,   DType::int64,
                                             DType::int8,     DType::uint8,   DType::boolean};

std::vector<DeviceCase> reduction_device_cases();      // cuda_reduce_test.cc
std::vector<DeviceCase> normalization_device_cases();  // cuda_normalize_test.cc
std::vector<DeviceCase> loss_device_cases();           // cuda_loss_test.cc
std::vector<DeviceCase> update_device_cases();         // cuda_update_test.cc
std::vector<DeviceCase> random_device_cases();         // cuda_random_test.cc
std::vector<DeviceCase> index_device_cases();          // cuda_index_test.cc: elements and slices chosen by indices
std::vector<DeviceCase> sort_device_cases();           // cuda_sort_test.cc
std::vector<DeviceCase> shape_device_cases();   // cuda_shape_test.cc: elements moved, repeated, summed up, created
std::vector<DeviceCase> vision_device_cases();  // cuda_vision_test.cc: images enlarged, sampled, compared, pooled

// All of these.
inline std::vector<DeviceCase> cuda_cases_elsewhere() {
  std::vector<DeviceCase> cases;
  for (const auto& family :
       {reduction_device_cases(), normalization_device_cases(), loss_device_cases(), update_device_cases(),
        random_device_cases(), index_device_cases(), sort_device_cases(), shape_device_cases(), vision_device_cases()})
    cases.insert(cases.end(), family.begin(), family.end());
  return cases;
}

}  // namespace symbind::testing
