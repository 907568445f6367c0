// Random orders of samples.
#pragma once

#include <cstdint>
#include <vector>

namespace symbind {

// 0, 1, … count - 1 in an order drawn from host_random(): seed(n) makes it reproducible. One draw, whatever the count.
std::vector<int64_t> random_order(int64_t count);

// The order of `count` samples in MXNet's iterators for a seed, the same on every machine.
std::vector<int64_t> seeded_order(int64_t count, uint32_t seed);

}  // namespace symbind
