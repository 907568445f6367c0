#include "symbind/kvstore/compression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "symbind/core/error.h"
#include "symbind/core/parallel.h"

namespace symbind {
namespace {

constexpr int64_t per_word = 16;
constexpr int64_t grain = 2048;  // words
constexpr uint32_t up = 3, down = 2;

constexpr int shift_of(int64_t position) { return static_cast<int>(8 * (position / 4) + 6 - 2 * (position % 4)); }

float parse_threshold(const std::string& text) {
  float value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(problem == std::errc() && end == text.data() + text.size() && std::isfinite(value),
          "[gradient compression] threshold must be a number: \"", text, "\"");
  require(value > 0, "[gradient compression] threshold must be greater than 0: ", text);
  return value;
}

}  // namespace

GradientCompression::GradientCompression(const std::map<std::string, std::string>& params) : threshold_(0.5f) {
  for (const auto& [name, value] : params)
    require(name == "type" || name == "threshold", "[gradient compression] unknown parameter ", name,
            ": there are type and threshold");
  const auto type = params.find("type");
  require(type != params.end(), "[gradient compression] the parameter type is missing: give {\"type\", \"2bit\"}");
  require(type->second == "2bit", "[gradient compression] unknown type \"", type->second, "\": there is 2bit");
  if (const auto given = params.find("threshold"); given != params.end()) threshold_ = parse_threshold(given->second);
}

void GradientCompression::compress(const NDArray& gradient, const NDArray& residual, const NDArray& words) const {
  const int64_t size = gradient.size();
  const float* const in = static_cast<const float*>(gradient.data());
  float* const rest = static_cast<float*>(residual.mutable_data());
  auto* const out = static_cast<uint32_t*>(words.mutable_data());
  const float threshold = threshold_;
  parallel_for(words_for(size), grain, [=](int64_t begin, int64_t end) {
    for (int64_t word = begin; word < end; ++word) {
      const int64_t first = word * per_word, count = std::min(per_word, size - first);
      uint32_t bits = 0;
      for (int64_t i = 0; i < count; ++i) {
        const float owed = rest[first + i] + in[first + i];
        const bool above = owed >= threshold, below = owed <= -threshold;
        rest[first + i] = above ? owed - threshold : below ? owed + threshold : owed;
        bits |= (above ? up : below ? down : 0u) << shift_of(i);
      }
      out[word] = bits;
    }
  });
}

void GradientCompression::sum_to(const NDArray& out, std::span<const NDArray> words) const {
  const int64_t size = out.size();
  std::vector<const uint32_t*> sent;
  sent.reserve(words.size());
  for (const NDArray& each : words) sent.push_back(static_cast<const uint32_t*>(each.data()));
  float* const result = static_cast<float*>(out.mutable_data());
  const float value_of[] = {0, 0, -threshold_, threshold_};
  parallel_for(words_for(size), grain, [&](int64_t begin, int64_t end) {
    for (int64_t word = begin; word < end; ++word) {
      const int64_t first = word * per_word, count = std::min(per_word, size - first);
      for (int64_t i = 0; i < count; ++i) {
        float total = value_of[(sent[0][word] >> shift_of(i)) & 3u];
        for (size_t device = 1; device < sent.size(); ++device)
          total += value_of[(sent[device][word] >> shift_of(i)) & 3u];
        result[first + i] = total;
      }
    }
  });
}

}  // namespace symbind
