// Cases of the detection operators, of op_cases_test.cc's table.
#pragma once

#include <vector>

#include "tests/support/op_case.h"

namespace symbind::testing {

void add_detection_cases(std::vector<OpCase>& cases);

}  // namespace symbind::testing
