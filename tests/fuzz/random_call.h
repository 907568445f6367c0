// A call of an operator made up from a number: parameters from the descriptions of its fields, shapes that mostly go
// together, types and values of every kind.
#pragma once

#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "symbind/core/dtype.h"
#include "symbind/core/shape.h"
#include "symbind/graph/op.h"

namespace symbind::fuzz {

struct RandomCall {
  const OpDef* op = nullptr;
  Attributes attributes;
  std::vector<Shape> shapes;
  std::vector<DType> types;
  uint64_t values = 0;  // the seed of the inputs' values
};

RandomCall random_call(uint64_t number);
std::ostream& operator<<(std::ostream& out, const RandomCall& call);

// So many values: small numbers, whole numbers, indices; now and then NaN, infinities, the smallest and the largest.
std::vector<double> random_values(std::mt19937_64& dice, int64_t count);

}  // namespace symbind::fuzz
