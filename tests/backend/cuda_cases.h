// The cases of operators on a GPU against the CPU (tests/support/device_case.h) that are in files by subject.
#pragma once

#include <vector>

#include "tests/support/device_case.h"

namespace symbind::testing {

std::vector<DeviceCase> index_device_cases();   // cuda_index_test.cc: elements and slices chosen by indices
std::vector<DeviceCase> sort_device_cases();    // cuda_sort_test.cc
std::vector<DeviceCase> shape_device_cases();   // cuda_shape_test.cc: elements moved, repeated, summed up, created
std::vector<DeviceCase> vision_device_cases();  // cuda_vision_test.cc: images enlarged, sampled, compared, pooled

inline std::vector<DeviceCase> cuda_cases_elsewhere() {
  std::vector<DeviceCase> cases;
  for (const auto& family : {index_device_cases(), sort_device_cases(), shape_device_cases(), vision_device_cases()})
    cases.insert(cases.end(), family.begin(), family.end());
  return cases;
}

}  // namespace symbind::testing
