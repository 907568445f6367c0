// Networks of many sizes over one set of parameters.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/kvstore/thread_transport.h"
#include "tests/support/memory.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

constexpr int64_t samples = 4, words = 12, width = 6;

// The mean of embedded words, 3 classes: the parameters do not depend on the length.
Symbol sentence_network(bool bias_first = false) {
  Symbol net = embedding(Symbol::variable("data"), {.input_dim = words, .output_dim = width}, "embed");
  net = apply("mean", {net}, {{"axis", "1"}});
  const Symbol bias = Symbol::variable("fc_bias", {.shape = Shape{3}});
  if (bias_first) net = apply("broadcast_add", {net, apply("sum", {bias}) * 0.0});
  net = apply("FullyConnected", {net, Symbol::variable("fc_weight"), bias}, {{"num_hidden", "3"}});
  return softmax_output(net, {}, "softmax");
}

SymGen sentences() {
  return [](const BucketKey& key) { return BucketNetwork{sentence_network(key == BucketKey(7))}; };
}

DataBatch sentence(int64_t length, int seed = 1, int64_t count = samples) {
  std::vector<float> data;
  for (int64_t i = 0; i < count * length; ++i) data.push_back(static_cast<float>((i * 5 + seed) % words));
  return {.data = {array(data, {count, length})},
          .label = {labels_of(count)},
          .bucket_key = length,
          .provide_data = {{{"data", {count, length}}}},
          .provide_label = {{{"softmax_label", {count}}}}};
}

NamedArrays sentence_values() {
  return {{"embed_weight", random_array({words, width}, 1)},
          {"fc_weight", random_array({3, width}, 2)},
          {"fc_bias", random_array({3}, 3)}};
}

BucketingModule trained_module(const BucketingOptions& options = {.default_bucket_key = 5}) {
  BucketingModule module(sentences(), options);
  const int64_t length = options.default_bucket_key.number();
  module.bind({{"data", {samples, length}}}, {{"softmax_label", {samples}}});
  module.init_params({.arg_params = sentence_values()});
  module.init_optimizer({.optimizer = optim::Sgd{.learning_rate = 0.5, .momentum = 0.9}});
  return module;
}

// A Module of its own for every length, with parameters and momenta that are carried over by hand.
NamedArrays trained_by_modules(const std::vector<int64_t>& lengths) {
  NamedArrays values = sentence_values(), momenta;
  for (const auto& [name, array] : values) momenta[name] = zeros(array.shape());
  for (const int64_t length : lengths) {
    Module module(sentence_network(length == 7));
    module.bind({{"data", {samples, length}}}, {{"softmax_label", {samples}}});
    module.init_params({.arg_params = values});
    module.forward_backward(sentence(length));
    const auto& names = module.param_names();
    for (size_t i = 0; i < names.size(); ++i)
      invoke("sgd_mom_update", {values[names[i]], module.exec_group()->grad_arrays()[i][0], momenta[names[i]]},
             {{"lr", "0.5"}, {"momentum", "0.9"}, {"rescale_grad", "0.25"}}, {.out = {values[names[i]]}});
  }
  return values;
}

TEST(BucketingModule, TrainsAllBucketsAsOneNetwork) {
  // The network of length 7 lists its parameters in another order: momenta belong to names.
  const std::vector<int64_t> lengths = {3, 5, 7, 3, 9, 7, 5, 2};
  BucketingModule module = trained_module();
  for (const int64_t length : lengths) {
    module.forward_backward(sentence(length));
    EXPECT_EQ(module.current_key(), BucketKey(length));
    EXPECT_EQ(module.data_shapes()[0].shape, (Shape{samples, length}));
    module.update();
  }
  EXPECT_EQ(module.buckets().size(), 5u);
  expect_equal(module.get_params().arg_params, trained_by_modules(lengths));
}

TEST(BucketingModule, TrainsOnSeveralContextsAndInAStore) {
  const std::vector<int64_t> lengths = {3, 7, 5, 9, 7};
  for (const char* store : {"local", "device"}) {
    BucketingModule module(sentences(), {.default_bucket_key = 5, .context = {cpu(0), cpu(1)}});
    module.bind({{"data", {samples, 5}}}, {{"softmax_label", {samples}}});
    module.init_params({.arg_params = sentence_values()});
    module.init_optimizer({.kvstore = store, .optimizer = optim::Sgd{.learning_rate = 0.5, .momentum = 0.9}});
    for (const int64_t length : lengths) {
      module.forward_backward(sentence(length));
      module.update();
    }
    expect_equal(module.get_params().arg_params, trained_by_modules(lengths));
  }
}

// ---- memory ---------------------------------------------------------------------------------------------------------

// Rows of scores for each word: outputs grow with the length.
Symbol tagging_network(int64_t length) {
  Symbol net = embedding(Symbol::variable("data"), {.input_dim = 50, .output_dim = 32}, "embed");
  net = reshape(net, {.shape = {-1, 32}});
  net = activation(fully_connected(net, {.num_hidden = 64}, "fc1"), {.act_type = "tanh"}, "tanh1");
  net = fully_connected(net, {.num_hidden = 50}, "fc2");
  return softmax_output(net, reshape(Symbol::variable("softmax_label"), {.shape = {samples * length}}), {}, "softmax");
}

int64_t live_bytes() { return Device::get(cpu()).memory().live; }

// Bytes that are there after all lengths were visited in this order, once and twice.
std::pair<int64_t, int64_t> bytes_after(const std::vector<int64_t>& lengths) {
  const int64_t before = live_bytes();
  BucketingModule module([](const BucketKey& key) { return BucketNetwork{tagging_network(key.number())}; },
                         {.default_bucket_key = lengths[0]});
  const auto shaped = [](int64_t length) { return Shape{samples, length}; };
  module.bind({{"data", shaped(lengths[0])}}, {{"softmax_label", shaped(lengths[0])}}, {.inputs_need_grad = false});
  module.init_params();
  module.init_optimizer({.optimizer = optim::Sgd{.learning_rate = 0.1, .momentum = 0.9}});
  const auto visit_all = [&] {
    for (const int64_t length : lengths) {
      const DataBatch batch{.data = {ones(shaped(length))}, .label = {zeros(shaped(length))}, .bucket_key = length};
      module.forward_backward(batch);
      module.update();
      module.forward(batch, false);
      EXPECT_EQ(module.get_outputs()[0].shape(), (Shape{samples * length, 50}));
    }
    return live_bytes() - before;
  };
  const int64_t once = visit_all();
  return {once, visit_all()};
}

TEST(BucketingModule, ThirtyBucketsNeedTheMemoryOfTheLargest) {
  std::vector<int64_t> growing(30);
  std::iota(growing.begin(), growing.end(), 31);
  std::vector<int64_t> shrinking(growing.rbegin(), growing.rend()), mixed = growing;
  for (size_t i = 0; i < mixed.size(); ++i) std::swap(mixed[i], mixed[i * 7 % mixed.size()]);
  const int64_t largest = bytes_after({60}).first;
  for (const auto& lengths : {growing, shrinking, mixed}) {
    const auto [once, twice] = bytes_after(lengths);
    EXPECT_LE(once, largest * 11 / 10) << "the largest alone: " << largest;
    EXPECT_EQ(twice, once);
  }
}

TEST(BucketingModule, WhatInferenceDerivesFromWeightsIsThereForOneBucketOnly) {
  const auto images = [](const BucketKey&) {
    Symbol net = Symbol::variable("data");
    for (const char* name : {"conv1", "conv2"})
      net = activation(convolution(net, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 64}, name),
                       {.act_type = "relu"}, std::string(name) + "_relu");
    net = pooling(net, {.kernel = {1, 1}, .pool_type = "avg", .global_pool = true}, "pool");
    return BucketNetwork{softmax_output(fully_connected(net, {.num_hidden = 3}, "fc"), {}, "softmax")};
  };
  const auto bytes = [&](const std::vector<int64_t>& sizes) {
    const int64_t before = live_bytes();
    BucketingModule module(images, {.default_bucket_key = sizes[0]});
    module.bind({{"data", {1, 16, sizes[0], sizes[0]}}}, {}, {.for_training = false});
    module.init_params();
    std::vector<float> first;
    for (int round = 0; round < 2; ++round)
      for (const int64_t size : sizes) {
        module.forward(DataBatch{.data = {ones({1, 16, size, size})}, .bucket_key = size}, false);
        if (size != sizes[0]) continue;
        const auto outputs = module.get_outputs()[0].to_vector<float>();
        EXPECT_TRUE(first.empty() || first == outputs) << "derived again, the weights are the same";
        first = outputs;
      }
    return live_bytes() - before;
  };
  const int64_t largest = bytes({20});
  EXPECT_LE(bytes({12, 13, 14, 15, 16, 17, 18, 19, 20}), largest * 11 / 10);
}

TEST(BucketingModule, BucketsOfOtherBatchSizesShareTheMemoryToo) {
  BucketingModule module = trained_module();
  for (const int64_t length : {3, 9, 5}) module.forward_backward(sentence(length, 1, 40));
  const int64_t live = live_bytes();
  for (const int64_t count : {2, 40, 3})
    for (const int64_t length : {3, 9, 5}) {
      module.forward(sentence(length, 2, count), true);
      EXPECT_EQ(module.get_outputs()[0].shape(), (Shape{count, 3}));
      module.backward();
    }
  EXPECT_LE(live_bytes() - live, 16 << 10);
}

TEST(BucketingModule, ABucketThatGrowsTheMemoryLeavesTheOutputsOfTheCurrentOne) {
  BucketingModule module = trained_module();
  module.forward(sentence(3), true);
  const NDArray expected = module.get_outputs()[0].copy();
  module.prepare(sentence(11, 1, 60));
  EXPECT_EQ(module.current_key(), BucketKey(3));
  EXPECT_TRUE(same_bits(module.get_outputs()[0], expected));
  module.backward();
  module.update();
  module.forward(sentence(11, 1, 60), false);
  EXPECT_EQ(module.get_outputs()[0].shape(), (Shape{60, 3}));
}

// ---- the rest -------------------------------------------------------------------------------------------------------

class Sentences : public DataIter {
 public:
  std::vector<DataDesc> provide_data() const override { return {{"data", {samples, 5}}}; }
  std::vector<DataDesc> provide_label() const override { return {{"softmax_label", {samples}}}; }
  BucketKey default_bucket_key() const override { return 5; }
  void reset() override { at_ = 0; }
  std::optional<DataBatch> next() override {
    if (at_ == 12) return std::nullopt;
    ++at_;
    return sentence(2 + at_ * 5 % 7, at_);
  }

 private:
  int at_ = 0;
};

TEST(BucketingModule, FitsScoresAndPredicts) {
  const Quiet quiet;
  Sentences data;
  BucketingModule module(sentences(), {.default_bucket_key = data.default_bucket_key()});
  module.fit(data, {.optimizer = optim::Adam{.learning_rate = 0.1}, .num_epoch = 1});
  const double before = module.score(data, "ce")[0].second;
  data.reset();
  module.fit(data, {.begin_epoch = 1, .num_epoch = 40});
  EXPECT_LT(module.score(data, "ce")[0].second, before);
  EXPECT_EQ(module.predict(data)[0].shape(), (Shape{12 * samples, 3}));
}

TEST(BucketingModule, KeysMayBeOfAnyKind) {
  BucketingModule module([](const BucketKey&) { return BucketNetwork{sentence_network()}; },
                         {.default_bucket_key = "short"});
  module.bind({{"data", {samples, 5}}}, {{"softmax_label", {samples}}});
  module.init_params({.arg_params = sentence_values()});
  DataBatch batch = sentence(8);
  for (const BucketKey& key : {BucketKey("long"), BucketKey{8, 1}, BucketKey(8), BucketKey("long")}) {
    batch.bucket_key = key;
    module.forward(batch, false);
    EXPECT_EQ(module.current_key(), key);
  }
  EXPECT_EQ(module.buckets().size(), 4u);
  batch = sentence(5);
  batch.bucket_key = {};
  module.forward(batch, false);
  EXPECT_EQ(module.current_key(), BucketKey("short"));
}

TEST(BucketingModule, ABatchNeedNotDescribeItself) {
  BucketingModule module = trained_module();
  module.forward(DataBatch{.data = {ones({samples, 8})}, .label = {labels_of(samples)}, .bucket_key = 8}, true);
  EXPECT_EQ(module.data_shapes()[0], (DataDesc{"data", {samples, 8}}));
  EXPECT_EQ(module.label_shapes()[0], (DataDesc{"softmax_label", {samples}}));
  EXPECT_TRUE(fails_with([&] { module.forward(DataBatch{.data = {}, .label = {}, .bucket_key = 9}); }, "bucket 9",
                         "0 data arrays", "1: data"));
}

TEST(BucketingModule, UnnamedSymbolsAreCountedFromZeroInEveryBucket) {
  BucketingModule module(
      [](const BucketKey&) {
        const Symbol net = apply("FullyConnected", {Symbol::variable("data")}, {{"num_hidden", "3"}});
        return BucketNetwork{softmax_output(net, {}, "softmax")};
      },
      {.default_bucket_key = 1});
  module.bind({{"data", {2, 4}}}, {{"softmax_label", {2}}});
  module.init_params();
  module.switch_bucket(2, {{"data", {3, 4}}}, {{"softmax_label", {3}}});
  EXPECT_TRUE(module.get_params().arg_params.contains("fullyconnected0_weight"));
}

TEST(BucketingModule, BindingAgainKeepsParametersAndOptimizer) {
  BucketingModule module = trained_module();
  for (const int64_t length : {3, 5}) {
    module.forward_backward(sentence(length));
    module.update();
  }
  module.bind({{"data", {samples, 5}}}, {{"softmax_label", {samples}}}, {.force_rebind = true});
  EXPECT_EQ(module.buckets().size(), 1u);
  for (const int64_t length : {7, 3}) {
    module.forward_backward(sentence(length));
    module.update();
  }
  expect_equal(module.get_params().arg_params, trained_by_modules({3, 5, 7, 3}));
}

TEST(BucketingModule, WithoutItsBindingItKeepsParametersAndOptimizer) {
  BucketingModule module = trained_module();
  for (const int64_t length : {5, 3}) {
    module.forward_backward(sentence(length));
    module.update();
  }
  module.reset_bind();
  EXPECT_FALSE(module.binded);
  EXPECT_TRUE(module.buckets().empty());
  EXPECT_EQ(module.current_key(), BucketKey(5));
  EXPECT_TRUE(fails_with([&] { module.forward(sentence(3)); }, "call bind and init_params first"));
  EXPECT_TRUE(fails_with([&] { module.current(); }, "call bind first"));
  expect_equal(module.get_params().arg_params, trained_by_modules({5, 3}));
  module.bind({{"data", {samples, 5}}}, {{"softmax_label", {samples}}});
  module.forward_backward(sentence(7));
  module.update();
  expect_equal(module.get_params().arg_params, trained_by_modules({5, 3, 7}));
}

TEST(BucketingModule, ComputesInAnotherTypeOnceItIsBoundAgain) {
  const Quiet quiet;
  const auto trained = [](DType dtype) {
    BucketingModule module = trained_module();
    const auto step = [&](int64_t length) {
      module.forward_backward(sentence(length));
      module.update();
    };
    for (const int64_t length : {5, 3}) step(length);
    EXPECT_TRUE(fails_with([&] { module.set_compute_dtype(DType::float16); }, "force_rebind"));
    module.set_compute_dtype(DType::float32);
    EXPECT_EQ(module.buckets().size(), 2u);
    if (dtype != DType::float32) {
      module.set_compute_dtype(dtype, /*force_rebind=*/true);
      EXPECT_FALSE(module.binded);
      EXPECT_TRUE(module.buckets().empty());
    }
    module.bind({{"data", {samples, 5}}}, {{"softmax_label", {samples}}}, {.force_rebind = true});
    for (double scale = 0;
         scale != module.default_bucket().loss_scale();) {  // a step whose gradients overflow is skipped
      scale = module.default_bucket().loss_scale();
      step(7);
    }
    EXPECT_EQ(module.current().loss_scale() > 1, dtype == DType::float16);
    return module.get_params().arg_params;
  };
  const NamedArrays exact = trained(DType::float32);
  for (const DType dtype : {DType::float16, DType::bfloat16})
    for (const auto& [name, value] : trained(dtype)) {
      EXPECT_TRUE(all_close(value, exact.at(name), {0.02, 0.02})) << name << " in " << dtype;
      EXPECT_FALSE(same_bits(value, exact.at(name))) << name << " was not computed in " << dtype;
    }
}

TEST(BucketingModule, AMonitorSeesBucketsThatCome) {
  BucketingModule module = trained_module();
  Monitor monitor(1, {.pattern = "softmax_output"});
  module.forward(sentence(3), false);
  module.install_monitor(monitor);
  for (const int64_t length : {3, 4, 5}) {
    monitor.tic();
    module.forward(sentence(length), false);
    EXPECT_EQ(monitor.toc().size(), 1u) << length;
  }
}

TEST(BucketingModule, StatesStayWhereTheBucketChanges) {
  const SymGen with_state = [](const BucketKey&) {
    Symbol net = apply("mean", {Symbol::variable("data")}, {{"axis", "1"}, {"keepdims", "True"}});
    net = fully_connected(net, {.num_hidden = 3}, "fc") + Symbol::variable("state");
    return BucketNetwork{softmax_output(net, {}, "softmax")};
  };
  BucketingModule module(with_state, {.default_bucket_key = 5, .state_names = {"state"}});
  module.bind({{"data", {samples, 5}}}, {{"softmax_label", {samples}}});
  module.init_params();
  module.current().set_states(7);
  for (const int64_t length : {3, 9}) {
    module.switch_bucket(length, {{"data", {samples, length}}}, {{"softmax_label", {samples}}});
    EXPECT_EQ(module.current().get_states()[0].to_vector<float>(), std::vector<float>(samples * 3, 7.0f)) << length;
  }
}

TEST(BucketingModule, ACheckpointGoesOnExactly) {
  const TempDir folder;
  const std::string prefix = folder.file("model");
  BucketingModule module = trained_module();
  for (const int64_t length : {3, 7}) {
    module.forward_backward(sentence(length));
    module.update();
  }
  module.save_checkpoint(prefix, 2, true);
  for (const char* name : {"-3-symbol.json", "-5-symbol.json", "-7-symbol.json", ".buckets", "-0002.params"})
    EXPECT_TRUE(std::filesystem::exists(prefix + name)) << name;
  EXPECT_EQ(load(prefix + ".buckets").arrays[0].to_vector<int>(), (std::vector<int>{5, 3, 7}));

  const auto again = BucketingModule::load(prefix, 2, sentences(), {.default_bucket_key = 5}, true);
  again->bind({{"data", {samples, 5}}}, {{"softmax_label", {samples}}});
  again->init_optimizer({.optimizer = optim::Sgd{.learning_rate = 0.5, .momentum = 0.9}});
  for (BucketingModule* either : {&module, again.get()})
    for (const int64_t length : {7, 9, 3}) {
      either->forward_backward(sentence(length));
      either->update();
    }
  expect_same_bits(again->get_params().arg_params, module.get_params().arg_params);
}

TEST(BucketingModule, SaysWhatIsWrong) {
  EXPECT_TRUE(fails_with([] { BucketingModule(sentences(), {}); }, "default_bucket_key"));
  EXPECT_TRUE(fails_with([] { BucketingModule(SymGen(), {.default_bucket_key = 1}); }, "no function"));
  EXPECT_TRUE(fails_with(
      [] {
        BucketingModule(
            [](const BucketKey&) {
              return BucketNetwork{sentence_network(), {"words"}};
            },
            {.default_bucket_key = 1});
      },
      "data_names has 'words'", "data"));
  BucketingModule module(sentences(), {.default_bucket_key = 5});
  EXPECT_TRUE(fails_with([&] { module.switch_bucket(3, {{"data", {samples, 3}}}); }, "call bind first"));
  EXPECT_TRUE(fails_with([&] { module.symbol(); }, "call bind first"));
  module.bind({{"data", {samples, 5}}}, {{"softmax_label", {samples}}});
  EXPECT_TRUE(fails_with([&] { module.switch_bucket(3, {{"data", {samples, 3}}}); }, "init_params"));
  EXPECT_TRUE(fails_with([&] { module.forward(sentence(3)); }, "init_params"));
  module.init_params();
  EXPECT_TRUE(fails_with([&] { module.update(); }, "init_optimizer"));
}

TEST(BucketingModule, ParametersThatTheDefaultBucketLacksOrHasInOtherShapesAreNamed) {
  const SymGen generate = [](const BucketKey& key) {
    Symbol net = Symbol::variable("data");
    if (key == BucketKey("extra")) net = fully_connected(net, {.num_hidden = 4}, "more");
    return BucketNetwork{
        softmax_output(fully_connected(net, {.num_hidden = key == BucketKey("wide") ? 5 : 3}, "fc"), {}, "softmax")};
  };
  BucketingModule module(generate, {.default_bucket_key = "plain"});
  module.bind({{"data", {2, 4}}}, {{"softmax_label", {2}}});
  module.init_params();
  const std::vector<DataDesc> data = {{"data", {2, 4}}}, label = {{"softmax_label", {2}}};
  EXPECT_TRUE(fails_with([&] { module.switch_bucket("extra", data, label); }, "bucket extra", "more_weight", "plain"));
  EXPECT_TRUE(fails_with([&] { module.switch_bucket("wide", data, label); }, "fc", "(3,4)"));
  EXPECT_EQ(module.current_key(), BucketKey("plain"));
  module.forward(DataBatch{.data = {ones({2, 4})}, .label = {zeros({2})}}, true);
  module.backward();
}

// ---- workers --------------------------------------------------------------------------------------------------------

// The lengths differ, and with them the order of the parameters, which are the keys of the store.
TEST(Bucketing, WorkersTrainOnDifferentBucketsInOneStep) {
  const std::vector<std::vector<int64_t>> lengths = {{5, 7, 3, 7, 5}, {7, 3, 3, 5, 9}};
  std::vector<NamedArrays> trained(2);
  const auto thrown = run_job(2, [&](Worker& worker) {
    BucketingModule module(sentences(), {.default_bucket_key = 5});
    module.bind({{"data", {samples, 5}}}, {{"softmax_label", {samples}}});
    module.init_params({.arg_params = sentence_values()});
    module.init_optimizer({.kvstore = worker.store(), .optimizer = optim::Sgd{.learning_rate = 0.5, .momentum = 0.9}});
    for (const int64_t length : lengths[static_cast<size_t>(worker.rank)]) {
      module.forward_backward(sentence(length, worker.rank + 1));
      module.update();
    }
    trained[static_cast<size_t>(worker.rank)] = module.get_params().arg_params;
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
  expect_same_bits(trained[0], trained[1]);
  EXPECT_FALSE(same_bits(trained[0].at("fc_weight"), sentence_values().at("fc_weight"))) << "nothing was learnt";
}

}  // namespace
}  // namespace symbind::testing
