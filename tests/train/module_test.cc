#include "symbind/train/module.h"

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/data/ndarray_iter.h"
#include "symbind/symbind.h"

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind {

using namespace symbind::testing;

namespace {

Symbol small_network(double dropout = 0) {
  Symbol net = Symbol::variable("data");
  net = fully_connected(net, {.num_hidden = 8}, "fc1");
  net = activation(net, {.act_type = "tanh"}, "tanh1");
  if (dropout > 0) net = symbind::dropout(net, {.p = dropout}, "drop1");
  net = fully_connected(net, {.num_hidden = 3}, "fc2");
  return softmax_output(net, {}, "softmax");
}

NDArray labels_of(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 7 % 3));
  return array(values, {count});
}

NDArrayIter batches(int64_t count = 40, int64_t batch_size = 10) {
  return NDArrayIter(random_array({count, 4}, 5), labels_of(count), {.batch_size = batch_size});
}

NamedArrays first_values() {
  return {{"fc1_weight", random_array({8, 4}, 11)},
          {"fc1_bias", random_array({8}, 12)},
          {"fc2_weight", random_array({3, 8}, 13)},
          {"fc2_bias", random_array({3}, 14)}};
}

struct Setting {
  std::vector<Context> context = {cpu()};
  std::vector<double> work_load_list = {};
  KVStoreArg kvstore = "local";
};

// The parameters after 20 steps with SGD and momentum.
NamedArrays trained(const Setting& setting) {
  NDArrayIter data = batches(40, 10);
  Module module(small_network(), {.context = setting.context, .work_load_list = setting.work_load_list});
  module.bind(data.provide_data(), data.provide_label());
  module.init_params({.arg_params = first_values()});
  module.init_optimizer({.kvstore = setting.kvstore,
                         .optimizer = "sgd",
                         .optimizer_params = {{"learning_rate", 0.1}, {"momentum", 0.9}, {"wd", 0.01}}});
  for (int epoch = 0; epoch < 5; ++epoch, data.reset())
    while (const auto batch = data.next()) {
      module.forward_backward(*batch);
      module.update();
    }
  return module.get_params().arg_params;
}

void expect_equal(const NamedArrays& actual, const NamedArrays& expected, Tolerance tolerance = {1e-5, 1e-5}) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, array] : expected) EXPECT_TRUE(all_close(actual.at(name), array, tolerance)) << name;
}

TEST(Module, TrainsAlikeOnOneDeviceAndOnFour) {
  const NamedArrays one = trained({});
  expect_equal(trained({.context = {cpu(0), cpu(1), cpu(2), cpu(3)}}), one);
  expect_equal(trained({.context = {cpu(0), cpu(1), cpu(2), cpu(3)}, .kvstore = "device"}), one);
  expect_equal(trained({.context = {cpu(0), cpu(1)}, .work_load_list = {1, 3}}), one);
  expect_equal(trained({.context = {cpu(0), cpu(0)}}), one);  // the same context twice
}

TEST(Module, TrainsAlikeWhetherTheStoreUpdatesOrNot) {
  const NamedArrays one = trained({});
  expect_equal(trained({.kvstore = nullptr}), one);
  expect_equal(trained({.kvstore = KVStore::create("local")}), one);
  setenv("MXNET_UPDATE_ON_KVSTORE", "0", 1);
  const NamedArrays outside = trained({.context = {cpu(0), cpu(1)}});
  unsetenv("MXNET_UPDATE_ON_KVSTORE");
  expect_equal(outside, one);
}

TEST(Module, ListsTheCandidatesForAnUnknownDataName) {
  EXPECT_TRUE(fails_with([] { Module module(small_network(), {.data_names = {"dota"}}); }, "dota", "data"));
  EXPECT_TRUE(fails_with([] { Module module(small_network(), {.fixed_param_names = {"fc9_weight"}}); }, "fc9_weight"));
}

TEST(Module, OnlyWarnsOfAnUnknownLabel) {
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel level, std::string_view message) {
    if (level == LogLevel::warning) warnings.emplace_back(message);
  });
  Module module(small_network(), {.label_names = {"lobel"}});
  set_log_sink({});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("lobel"), std::string::npos);
}

TEST(Module, RebindsOnlyWhenForcedAndKeepsItsParameters) {
  Module module(small_network());
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  module.init_params({.arg_params = first_values()});
  set_log_sink([](LogLevel, std::string_view) {});
  module.bind({{"data", {6, 4}}}, {{"softmax_label", {6}}});
  set_log_sink({});
  EXPECT_EQ(module.data_shapes()[0].shape, (Shape{10, 4}));
  module.bind({{"data", {6, 4}}}, {}, {.for_training = false, .force_rebind = true});
  EXPECT_EQ(module.data_shapes()[0].shape, (Shape{6, 4}));
  expect_equal(module.get_params().arg_params, first_values());
  EXPECT_TRUE(fails_with([&] { module.bind({{"data", {6, 5}}}, {}, {.force_rebind = true}); }, "fc1"));
  EXPECT_EQ(module.data_shapes()[0].shape, (Shape{6, 4}));  // a failed bind leaves the old one
}

TEST(Module, ReshapesItselfForABatchOfAnotherSize) {
  Module module(small_network());
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  module.init_params({.arg_params = first_values()});
  module.forward(DataBatch{.data = {random_array({7, 4}, 1)}, .label = {labels_of(7)}}, true);
  EXPECT_EQ(module.get_outputs()[0].shape(), (Shape{7, 3}));
  module.forward(DataBatch{.data = {random_array({12, 4}, 1)}}, false);  // without labels
  EXPECT_EQ(module.get_outputs()[0].shape(), (Shape{12, 3}));
  EXPECT_TRUE(fails_with([&] { module.forward(DataBatch{.data = {random_array({12, 4}, 1)}}, true); }, "labels"));
}

TEST(Module, NeedsEveryParameterUnlessMissingOnesAreAllowed) {
  Module module(small_network());
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  NamedArrays some = first_values();
  some.erase("fc2_bias");
  EXPECT_TRUE(fails_with([&] { module.init_params({.arg_params = some}); }, "fc2_bias"));
  module.init_params({.arg_params = some, .allow_missing = true});
  some["fc1_weight"] = zeros({8, 5});
  EXPECT_TRUE(fails_with([&] { module.init_params({.arg_params = some, .allow_missing = true, .force_init = true}); },
                         "fc1_weight", "(8,4)", "(8,5)"));
}

TEST(Module, LeavesFixedParametersAlone) {
  NDArrayIter data = batches();
  Module module(small_network(), {.fixed_param_names = {"fc1_weight"}});
  module.fit(data, {.arg_params = first_values(), .num_epoch = 2});
  const NamedArrays after = module.get_params().arg_params;
  EXPECT_TRUE(same_bits(after.at("fc1_weight"), first_values().at("fc1_weight")));
  EXPECT_FALSE(same_bits(after.at("fc2_weight"), first_values().at("fc2_weight")));
}

TEST(Module, LearnsWithFitAndScoresAndPredicts) {
  NDArrayIter data(random_array({90, 4}, 5), labels_of(90), {.batch_size = 20});  // the last batch is padded
  Module module(small_network(), {.context = {cpu(0), cpu(1)}});
  int epochs = 0;
  int64_t calls = 0;
  seed(3);
  set_log_sink([](LogLevel, std::string_view) {});
  module.fit(data,
             {.eval_data = &data,
              .epoch_end_callback = {[&](int, const Symbol&, const NamedArrays&, const NamedArrays&) { ++epochs; }},
              .batch_end_callback = {[&](const BatchEndParam& param) { calls = std::max(calls, param.nbatch); }},
              .optimizer_params = {{"learning_rate", 0.5}, {"momentum", 0.9}},
              .initializer = std::make_shared<init::Xavier>(),
              .num_epoch = 3});
  set_log_sink({});
  EXPECT_EQ(epochs, 3);
  EXPECT_EQ(calls, 4);
  const auto outputs = module.predict(data);
  EXPECT_EQ(outputs[0].shape(), (Shape{90, 3}));  // padding is cut off
  // The score is what the predictions say.
  const auto score = module.score(data, "acc");
  const auto probabilities = outputs[0].to_vector<float>();
  const auto truth = labels_of(90).to_vector<float>();
  int right = 0;
  for (size_t i = 0; i < 90; ++i) {
    const auto row = probabilities.begin() + static_cast<std::ptrdiff_t>(3 * i);
    right += std::max_element(row, row + 3) - row == static_cast<std::ptrdiff_t>(truth[i]);
  }
  EXPECT_NEAR(score[0].second, right / 90.0, 1e-9);
}

TEST(Module, ResumesFromACheckpointBitForBit) {
  const TempDir folder;
  const std::string prefix = folder.file("net");
  const auto fit = [&](Module& module, int begin, int end) {
    NDArrayIter data = batches();
    set_log_sink([](LogLevel, std::string_view) {});
    module.fit(data,
               {.optimizer = "adam",
                .optimizer_params = {{"learning_rate", 0.01},
                                     {"lr_scheduler", factor_scheduler({.step = 5, .factor = 0.7, .base_lr = 0.01})}},
                .arg_params = first_values(),
                .begin_epoch = begin,
                .num_epoch = end});
    set_log_sink({});
  };
  const ModuleOptions two{.context = {cpu(0), cpu(1)}};
  seed(7);
  Module whole(small_network(0.5), two);
  fit(whole, 0, 2);
  whole.save_checkpoint(prefix, 2, true);
  fit(whole, 2, 4);

  seed(99);  // the checkpoint brings its own random state
  auto resumed = Module::load(prefix, 2, true, two);
  fit(*resumed, 2, 4);
  const NamedArrays expected = whole.get_params().arg_params;
  for (const auto& [name, array] : resumed->get_params().arg_params)
    EXPECT_TRUE(same_bits(array, expected.at(name))) << name;
}

TEST(Module, PassesOnWhatAnIteratorThrows) {
  class Broken : public DataIter {
   public:
    std::vector<DataDesc> provide_data() const override { return {{"data", {10, 4}}}; }
    std::vector<DataDesc> provide_label() const override { return {{"softmax_label", {10}}}; }
    void reset() override {}
    std::optional<DataBatch> next() override { throw std::runtime_error("the disk is gone"); }
  } data;
  Module module(small_network());
  EXPECT_THROW(module.fit(data, {.num_epoch = 1}), std::runtime_error);
}

TEST(Module, SharesParametersWithAnother) {
  Module first(small_network());
  first.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  first.init_params({.arg_params = first_values()});
  Module second(small_network());
  second.bind({{"data", {5, 4}}}, {{"softmax_label", {5}}}, {.shared_module = &first});
  EXPECT_TRUE(second.exec_group()->param_arrays()[0][0].same_memory(first.exec_group()->param_arrays()[0][0]));
}

}  // namespace
}  // namespace symbind
