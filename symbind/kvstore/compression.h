// Gradients quantized to two bits. Each element is sent as one of {-threshold, 0, +threshold}; the quantization error
// stays in a residual and is added to the next gradient, so it is delayed, not lost. Sixteen elements share a 32-bit
// word: element i of a word is in its byte i / 4, the first of four in the highest bits, as 11 for
// +threshold, 10 for -threshold and 00 for nothing.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "symbind/core/ndarray.h"

namespace symbind {

class GradientCompression {
 public:
  // {{"type", "2bit"}, {"threshold", "0.5"}}: the type is required, the threshold defaults to 0.5.
  explicit GradientCompression(const std::map<std::string, std::string>& params);
  explicit GradientCompression(float threshold) : threshold_(threshold) {}

  float threshold() const { return threshold_; }
  static int64_t words_for(int64_t elements) { return (elements + 15) / 16; }

  // All arrays are float32 (words: int32) and can be read by the host.
  // Assigns the words; adds the gradient to the residual and subtracts what is sent.
  void compress(const NDArray& gradient, const NDArray& residual, const NDArray& words) const;
  // Assigns to `out` the sum of several decompressed gradients, added in the order given.
  void sum_to(const NDArray& out, std::span<const NDArray> words) const;

 private:
  float threshold_;
};

}  // namespace symbind
