// Both orders use the Fisher-Yates shuffle from the front: sample i is swapped with one of the samples 0 … i, each
// equally likely.
#include "symbind/data/shuffle.h"

#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/random.h"

namespace symbind {
namespace {

// `up_to(i)` returns a position in 0 … i.
template <class UpTo>
std::vector<int64_t> exchanged(int64_t count, UpTo up_to) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t i = 1; i < order.size(); ++i) std::swap(order[i], order[up_to(i)]);
  return order;
}

}  // namespace

std::vector<int64_t> random_order(int64_t count) {
  const RandomCursor cursor = host_random().take(1);
  return exchanged(count, [&](size_t i) {
    const PhiloxBlock block = philox(cursor.key, cursor.draw, i);
    return static_cast<size_t>(unit_double(block.words[0], block.words[1]) * static_cast<double>(i + 1));
  });
}

std::vector<int64_t> seeded_order(int64_t count, uint32_t seed) {
  constexpr uint32_t most = std::numeric_limits<uint32_t>::max();
  require(count < int64_t{most}, "a seeded order is for fewer than ", most, " samples: ", count);
  std::mt19937 generator(seed);
  return exchanged(count, [&](size_t i) {
    // Words above the largest multiple are drawn again, so that every index is equally likely.
    const auto choices = static_cast<uint32_t>(i + 1);
    const uint32_t width = most / choices;
    uint32_t word = 0;
    do word = static_cast<uint32_t>(generator());
    while (word >= choices * width);
    return size_t{word / width};
  });
}

}  // namespace symbind
