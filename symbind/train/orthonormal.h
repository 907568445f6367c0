// Orthonormal vectors from random ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace symbind::init {

// A matrix of `rows` x `columns`, row-major, whose rows are orthonormal if they are no more than its columns, and whose
// columns are otherwise: the orthogonal factor of `random`, which has that shape, or of its transpose.
std::vector<double> orthonormal(std::span<const float> random, int64_t rows, int64_t columns);

}  // namespace symbind::init
