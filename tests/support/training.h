// A small network with its data and initial values, for tests that train it.
#pragma once

#include "symbind/core/log.h"
#include "symbind/symbind.h"

#include "tests/support/arrays.h"

namespace symbind::testing {

// 4 numbers to 3 classes.
inline Symbol small_network(double dropout = 0) {
  Symbol net = Symbol::variable("data");
  net = fully_connected(net, {.num_hidden = 8}, "fc1");
  net = activation(net, {.act_type = "tanh"}, "tanh1");
  if (dropout > 0) net = symbind::dropout(net, {.p = dropout}, "drop1");
  net = fully_connected(net, {.num_hidden = 3}, "fc2");
  return softmax_output(net, {}, "softmax");
}

inline NamedArrays first_values() {
  return {{"fc1_weight", random_array({8, 4}, 11)},
          {"fc1_bias", random_array({8}, 12)},
          {"fc2_weight", random_array({3, 8}, 13)},
          {"fc2_bias", random_array({3}, 14)}};
}

inline NDArray labels_of(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 7 % 3));
  return array(values, {count});
}

inline NDArrayIter batches(int64_t count = 40, int64_t batch_size = 10, bool shuffle = false) {
  return NDArrayIter(random_array({count, 4}, 5), labels_of(count), {.batch_size = batch_size, .shuffle = shuffle});
}

inline NamedArrays trained_on(const std::vector<Context>& contexts, const std::string& store, int64_t batch_size = 10,
                              int epochs = 6) {
  NDArrayIter data = batches(40, batch_size);
  Module module(small_network(), {.context = contexts});
  module.fit(data, {.kvstore = store,
                    .optimizer_params = {{"learning_rate", 0.1}, {"momentum", 0.9}},
                    .arg_params = first_values(),
                    .num_epoch = epochs});
  return module.get_params().arg_params;
}

inline void expect_equal(const NamedArrays& actual, const NamedArrays& expected, Tolerance tolerance = {1e-5, 1e-5}) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, array] : expected) EXPECT_TRUE(all_close(actual.at(name), array, tolerance)) << name;
}

inline void expect_same_bits(const NamedArrays& actual, const NamedArrays& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, array] : expected) EXPECT_TRUE(same_bits(actual.at(name), array)) << name;
}

// While it lives, nothing is logged.
class Quiet {
 public:
  Quiet() {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~Quiet() { set_log_sink({}); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

}  // namespace symbind::testing
