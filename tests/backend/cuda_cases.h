// The cases of operators on a GPU against the CPU (tests/support/device_case.h), which are in files by subject.
#pragma once

#include <vector>

#include "tests/support/device_case.h"

namespace symbind::testing {

std::vector<DeviceCase> reduction_cases();      // cuda_reduce_test.cc
std::vector<DeviceCase> normalization_cases();  // cuda_normalize_test.cc
std::vector<DeviceCase> loss_cases();           // cuda_loss_test.cc
std::vector<DeviceCase> update_cases();         // cuda_update_test.cc
std::vector<DeviceCase> random_cases();         // cuda_random_test.cc
std::vector<DeviceCase> index_cases();          // cuda_index_test.cc: elements and slices chosen by indices
std::vector<DeviceCase> sort_cases();           // cuda_sort_test.cc
std::vector<DeviceCase> shape_cases();          // cuda_shape_test.cc: elements moved, repeated, summed up, created
std::vector<DeviceCase> vision_cases();         // cuda_vision_test.cc: images enlarged, sampled, compared, pooled

// All of these.
inline std::vector<DeviceCase> cuda_cases_elsewhere() {
  std::vector<DeviceCase> cases;
  for (const auto& family : {reduction_cases(), normalization_cases(), loss_cases(), update_cases(), random_cases(),
                             index_cases(), sort_cases(), shape_cases(), vision_cases()})
    cases.insert(cases.end(), family.begin(), family.end());
  return cases;
}

}  // namespace symbind::testing
