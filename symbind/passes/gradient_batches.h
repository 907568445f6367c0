// The conversions of gradients that are merged into one operator. All in one would complete every gradient at the end
// of backward; in batches the first ones can be sent to other workers while backward computes the rest.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace symbind {

// Large enough that a launch takes little of a batch's time, and that a network has few of them.
inline constexpr size_t gradient_batch_bytes = size_t{8} << 20;

// Consecutive conversions, in the order of their nodes; bytes_of(conversion) is the size of a gradient.
template <class Conversion, class Bytes>
std::vector<std::vector<Conversion>> gradient_batches(const std::vector<Conversion>& conversions,
                                                      const Bytes& bytes_of) {
  std::vector<std::vector<Conversion>> batches;
  size_t bytes = gradient_batch_bytes;  // the first conversion begins a batch
  for (const Conversion& conversion : conversions) {
    if (bytes >= gradient_batch_bytes) {
      batches.emplace_back();
      bytes = 0;
    }
    batches.back().push_back(conversion);
    bytes += bytes_of(conversion);
  }
  return batches;
}

}  // namespace symbind
