#include <cmath>

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

// The sum over every path that emits the labels, by trying all of them.
double probability_of(const Values& data, int64_t sequence, const std::vector<int64_t>& labels, int64_t blank) {
  const int64_t steps = data.shape[0], batch = data.shape[1], classes = data.shape[2];
  const auto score = [&](int64_t t, int64_t k) {
    return std::exp(data.data[static_cast<size_t>((t * batch + sequence) * classes + k)]);
  };
  const auto paths = static_cast<int64_t>(std::pow(classes, steps));
  double all = 0;
  for (int64_t path = 0; path < paths; ++path) {
    double probability = 1;
    std::vector<int64_t> emitted;
    int64_t before = blank, rest = path;
    for (int64_t t = 0; t < steps; ++t, rest /= classes) {
      const int64_t now = rest % classes;
      double sum = 0;
      for (int64_t k = 0; k < classes; ++k) sum += score(t, k);
      probability *= score(t, now) / sum;
      if (now != blank && now != before) emitted.push_back(now);
      before = now;
    }
    if (emitted == labels) all += probability;
  }
  return all;
}

Reference ctc_by_all_paths(bool blank_first) {
  return [blank_first](Inputs_ in) {
    const int64_t batch = in[0].shape[1], longest = in[1].shape[1], blank = blank_first ? 0 : in[0].shape[2] - 1;
    Values losses{{batch}, {}};
    for (int64_t n = 0; n < batch; ++n) {
      std::vector<int64_t> labels;
      for (int64_t i = 0; i < longest; ++i) {
        const auto label = static_cast<int64_t>(std::floor(in[1].data[static_cast<size_t>(n * longest + i)]));
        if (label == (blank_first ? 0 : -1)) break;
        labels.push_back(label);
      }
      const double probability = probability_of(in[0], n, labels, blank);
      losses.data.push_back(probability == 0 ? 0 : -std::log(probability));
    }
    return std::vector{losses};
  };
}

}  // namespace

void add_ctc_cases(std::vector<OpCase>& cases) {
  const auto shapes = std::vector<std::vector<Shape>>{
      {{6, 2, 3}, {2, 3}}, {{1, 1, 3}, {1, 1}}, {{2, 4, 3}, {4, 2}}, {{4, 0, 3}, {0, 2}}, {{3, 2, 3}, {2, 0}}};
  cases.push_back({.name = "CTCLoss",
                   .op = "CTCLoss",
                   .inputs = {{"data", {5, 3, 3}, -2, 2}, {"label", {3, 2}, 0, 2.9, DType::int32, false}},
                   .reference = ctc_by_all_paths(true),
                   .more_shapes = shapes,
                   .slack = 4});
  cases.push_back({.name = "CTCLoss_last",
                   .op = "CTCLoss",
                   .attributes = {{"blank_label", "last"}},
                   .inputs = {{"data", {5, 3, 3}, -2, 2}, {"label", {3, 2}, 0, 1.9, DType::int32, false}},
                   .reference = ctc_by_all_paths(false),
                   .more_shapes = shapes,
                   .slack = 4});
  cases.push_back({.name = "CTCLoss_lengths",
                   .op = "CTCLoss",
                   .attributes = {{"use_data_lengths", "True"}, {"use_label_lengths", "True"}},
                   .inputs = {{"data", {12, 4, 7}, -2, 2},
                              {"label", {4, 5}, 1, 6.9, DType::int32, false},
                              {"data_lengths", {4}, 9, 12.9, DType::int64, false},
                              {"label_lengths", {4}, 0, 5.9, DType::uint8, false}},
                   .slack = 4});
}

}  // namespace symbind::testing
