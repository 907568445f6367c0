#include "symbind/train/module.h"

#include <gtest/gtest.h>

#include "tests/support/training.h"

namespace symbind {

using namespace symbind::testing;

namespace {

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

// Wide layers one after another, whose activations are most of the memory.
Symbol deep_network() {
  Symbol net = Symbol::variable("data");
  for (int layer = 0; layer < 6; ++layer)
    net = activation(fully_connected(net, {.num_hidden = 32}, join("fc", layer)), {.act_type = "sigmoid"});
  return softmax_output(fully_connected(net, {.num_hidden = 3}, "last"), {}, "softmax");
}

struct BudgetResult {
  NamedArrays params;
  size_t working_bytes = 0;
};

BudgetResult trained_within(size_t memory_budget, const std::vector<Context>& context) {
  NDArrayIter data = batches(1200, 400);
  Module module(deep_network(), {.context = context, .compile_options = {.memory_budget = memory_budget}});
  module.bind(data.provide_data(), data.provide_label());
  seed(3);
  module.init_params({.initializer = std::make_shared<init::Uniform>(0.5)});
  module.init_optimizer({.optimizer = "sgd", .optimizer_params = {{"learning_rate", 0.1}}});
  while (const auto batch = data.next()) {
    module.forward_backward(*batch);
    module.update();
  }
  return {module.get_params().arg_params, module.exec_group()->execs()[0]->memory().arena};
}

TEST(Module, TrainsAlikeInLessMemoryWithABudget) {
  for (const std::vector<Context>& context : {std::vector{cpu(0)}, std::vector{cpu(0), cpu(1)}}) {
    const BudgetResult usual = trained_within(0, context);
    const size_t budget = usual.working_bytes * 9 / 10;
    const BudgetResult less = trained_within(budget, context);
    EXPECT_LE(less.working_bytes, budget) << "of " << usual.working_bytes;
    expect_same_bits(less.params, usual.params);
  }
}

TEST(Module, HasAStoreForSeveralDevicesOrWhenItIsGivenOne) {
  for (const char* type : {"local", "device"}) {
    EXPECT_EQ(choose_kvstore(type, 1, {}).store, nullptr) << type;
    EXPECT_FALSE(choose_kvstore(type, 1, {}).update_on_kvstore) << type;
    EXPECT_NE(choose_kvstore(type, 2, {}).store, nullptr) << type;
    EXPECT_TRUE(choose_kvstore(type, 2, {}).update_on_kvstore) << type;
  }
  EXPECT_EQ(choose_kvstore(nullptr, 2, {}).store, nullptr);
  const KVStorePtr own = KVStore::create("local");
  EXPECT_EQ(choose_kvstore(own, 1, {}).store, own);
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

// What was warned of while it lives.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning) all_ += std::string(message) + "\n";
    });
  }
  ~Warnings() { set_log_sink({}); }
  bool have(const std::string& part) const { return all_.find(part) != std::string::npos; }

 private:
  std::string all_;
};

TEST(Module, WarnsOfASecondOptimizerThatIsIgnored) {
  NDArrayIter data = batches();
  Module module(small_network());
  const auto own = Optimizer::create(optim::Sgd{.learning_rate = 0.1, .rescale_grad = 0.1});
  module.fit(data, {.optimizer = own, .num_epoch = 1});
  {
    const Warnings warnings;
    module.fit(data, {.optimizer = own, .num_epoch = 1});
    EXPECT_FALSE(warnings.have("optimizer")) << "it is the one in use";
  }
  const Warnings warnings;
  module.fit(data, {.optimizer = "adam", .num_epoch = 1});
  EXPECT_TRUE(warnings.have("optimizer is initialized already") && warnings.have("force_init"));
  EXPECT_EQ(module.optimizer(), own);
}

TEST(Module, WarnsOfContextsThatTrainApart) {
  NDArrayIter data = batches();
  const auto warned = [&](std::vector<Context> contexts, const KVStoreArg& store) {
    Module module(small_network(), {.context = std::move(contexts)});
    const Warnings warnings;
    module.fit(data, {.kvstore = store, .num_epoch = 1});
    return warnings.have("2 contexts without a kvstore");
  };
  EXPECT_TRUE(warned({cpu(0), cpu(1)}, nullptr));
  EXPECT_FALSE(warned({cpu(0), cpu(1)}, "local"));
  EXPECT_FALSE(warned({cpu(0)}, nullptr));
}

TEST(Module, FitLeavesOutParametersThatTheNetworkDoesNotHaveAndSaysSo) {
  NDArrayIter data = batches();
  Module module(small_network());
  NamedArrays params = first_values();
  params["fc7_weight"] = zeros({1});
  const Warnings warnings;
  module.fit(data, {.arg_params = params, .num_epoch = 1});
  EXPECT_TRUE(warnings.have("fc7_weight"));
}

TEST(Module, TakesLabelsOfIntegers) {
  const auto trained = [](DType type) {
    NDArrayIter data(random_array({40, 4}, 5), labels_of(40).astype(type), {.batch_size = 10});
    Module module(small_network(), {.context = {cpu(0), cpu(1)}});
    module.fit(data, {.arg_params = first_values(), .num_epoch = 2});
    return module.get_params().arg_params;
  };
  for (const DType type : {DType::int32, DType::int64, DType::uint8})
    expect_same_bits(trained(type), trained(DType::float32));
}

TEST(Module, LeavesTheTypeOfLabelsToNetworksThatReadIntegers) {
  const Symbol words = embedding(Symbol::variable("softmax_label"), Symbol::variable("words_weight"),
                                 {.input_dim = 3, .output_dim = 4}, "words");
  Module module(make_loss(Symbol::variable("data") * words, {}, "loss"));
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}, DType::int32}});
  EXPECT_EQ(module.exec_group()->execs()[0]->arg_dict().at("softmax_label").dtype(), DType::int32);
}

TEST(Module, RefusesLabelsThatTheNetworkWouldRound) {
  const auto bind = [](DType data, DType label) {
    Module module(small_network());
    module.bind({{"data", {10, 4}, data}}, {{"softmax_label", {10}, label}});
  };
  for (const DType data : {DType::float16, DType::bfloat16}) {
    bind(data, DType::uint8);
    EXPECT_TRUE(fails_with([&] { bind(data, DType::int32); }, "label 'softmax_label' is int32", join("in ", data)));
  }
}

TEST(Module, RefusesLabelsOfDifferentIntegersThatAreAdded) {
  Module module(make_loss(Symbol::variable("data") *
                          cast(Symbol::variable("a") + Symbol::variable("b"), {.dtype = DType::float32})),
                {.label_names = {"a", "b"}});
  const auto bind = [&] { module.bind({{"data", {4}}}, {{"a", {4}, DType::int32}, {"b", {4}, DType::int64}}); };
  EXPECT_TRUE(fails_with(bind, "int64", "int32"));
}

TEST(Module, LeavesTheTypeOfOneLabelBesideAnotherThatIsConverted) {
  const Symbol words = embedding(Symbol::variable("words"), Symbol::variable("words_weight"),
                                 {.input_dim = 3, .output_dim = 3}, "embedded");
  Module module(
      softmax_output(fully_connected(Symbol::variable("data"), {.num_hidden = 3}, "fc1") + words, {}, "softmax"),
      {.label_names = {"softmax_label", "words"}});
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}, DType::int32}, {"words", {10}, DType::int64}});
  const auto type_of = [&](const char* name) { return module.exec_group()->execs()[0]->arg_dict().at(name).dtype(); };
  EXPECT_EQ(type_of("softmax_label"), DType::float32);
  EXPECT_EQ(type_of("words"), DType::int64);
}

TEST(Module, WarnsOfCallbacksThatWaitForAValidationThatNeverComes) {
  NDArrayIter data = batches();
  Module module(small_network());
  const Warnings warnings;
  module.fit(data, {.eval_end_callback = {[](const BatchEndParam&) {}}, .num_epoch = 1});
  EXPECT_TRUE(warnings.have("eval_data"));
}

// The norm of what one plain step of rate 1 changed.
double step_norm(const OptimizerArg& optimizer, std::vector<Context> contexts, const KVStoreArg& store) {
  Module module(small_network(), {.context = std::move(contexts)});
  NDArrayIter data = batches();
  module.bind(data.provide_data(), data.provide_label());
  module.init_params({.arg_params = first_values()});
  module.init_optimizer({.kvstore = store, .optimizer = optimizer});
  module.forward_backward(*data.next());
  module.update();
  std::vector<NDArray> changes;
  for (const auto& [name, value] : module.get_params().arg_params) changes.push_back(value - first_values().at(name));
  return global_norm(changes);
}

TEST(Module, ClipsTheNormOfAllGradientsOfAStep) {
  const double whole = step_norm(optim::Sgd{.learning_rate = 1}, {cpu()}, nullptr), bound = whole / 3;
  const auto clipped = [&](std::vector<Context> contexts, const KVStoreArg& store) {
    return step_norm(optim::Sgd{.learning_rate = 1, .clip_global_norm = bound}, std::move(contexts), store);
  };
  EXPECT_NEAR(clipped({cpu()}, nullptr), bound, 1e-5 * whole);
  EXPECT_NEAR(step_norm(optim::Sgd{.learning_rate = 1, .clip_global_norm = 2 * whole}, {cpu()}, nullptr), whole, 0);
  // With several contexts the gradients that count are the sums, in the store and outside of it.
  EXPECT_NEAR(clipped({cpu(0), cpu(1)}, "local"), bound, 1e-5 * whole);
  EXPECT_NEAR(clipped({cpu(0), cpu(1)}, "device"), bound, 1e-5 * whole);
  setenv("MXNET_UPDATE_ON_KVSTORE", "0", 1);
  EXPECT_NEAR(clipped({cpu(0), cpu(1)}, "local"), bound, 1e-5 * whole);
  unsetenv("MXNET_UPDATE_ON_KVSTORE");
}

TEST(Module, TakesAnOptimizersArgumentsAsAStruct) {
  NDArrayIter data = batches();
  const auto trained = [&](const FitArgs& args) {
    data.reset();
    Module module(small_network());
    module.fit(data, args);
    return module.get_params().arg_params;
  };
  const Quiet quiet;
  const NamedArrays named = trained({.optimizer = "sgd",
                                     .optimizer_params = {{"learning_rate", 0.2}, {"momentum", 0.9}},
                                     .arg_params = first_values(),
                                     .num_epoch = 2});
  const NamedArrays typed = trained(
      {.optimizer = optim::Sgd{.learning_rate = 0.2, .momentum = 0.9}, .arg_params = first_values(), .num_epoch = 2});
  expect_same_bits(typed, named);
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

TEST(Module, GivesTheParametersThatWereSetThoughOthersWereMissing) {
  Module module(small_network(), {.context = {cpu(0), cpu(1)}});
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  module.init_params({.arg_params = first_values()});
  expect_same_bits(module.get_params().arg_params, first_values());
  const NDArray bias = random_array({8}, 99);
  module.set_params({{"fc1_bias", bias}}, {}, /*allow_missing=*/true);
  NamedArrays expected = first_values();
  expected["fc1_bias"] = bias;
  expect_same_bits(module.get_params().arg_params, expected);
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

// The first class is predicted always: half of the samples, the first ones, are right.
class AlwaysTheFirstClass : public ::testing::Test {
 protected:
  static NDArray labels() {
    NDArray labels = zeros({40});
    labels.slice(20, 40).fill(2);
    return labels;
  }
  static NamedArrays parameters() {
    NamedArrays values = first_values();
    for (const auto& [name, array] : values) array.fill(0);
    values.at("fc2_bias").copy_from(std::vector<float>{1, 0, 0});
    return values;
  }
  NDArrayIter data{random_array({40, 4}, 5), labels(), {.batch_size = 10}};
  Module module{small_network()};
};

TEST_F(AlwaysTheFirstClass, ScoresAsManyBatchesAsAskedFor) {
  module.bind(data.provide_data(), data.provide_label(), {.for_training = false});
  module.init_params({.arg_params = parameters()});
  const std::map<int64_t, double> accuracy{{1, 1.0}, {2, 1.0}, {3, 2 / 3.0}, {4, 0.5}, {9, 0.5}};
  for (const auto& [asked, expected] : accuracy) {
    int64_t batches_seen = 0, at_end = -1;
    const auto score = module.score(
        data, "acc",
        {.num_batch = asked,
         .batch_end_callback = {[&](const BatchEndParam& param) { EXPECT_EQ(param.nbatch, batches_seen++); }},
         .score_end_callback = {[&](const BatchEndParam& param) { at_end = param.nbatch; }}});
    EXPECT_DOUBLE_EQ(score[0].second, expected) << asked << " batches";
    EXPECT_EQ(batches_seen, std::min<int64_t>(asked, 4));
    EXPECT_EQ(at_end, batches_seen);
    EXPECT_EQ(data.next().has_value(), asked < 4) << "the iterator stays after the last batch scored";
  }
}

TEST_F(AlwaysTheFirstClass, PredictsAsManyBatchesAsAskedFor) {
  module.bind(data.provide_data(), data.provide_label(), {.for_training = false});
  module.init_params({.arg_params = parameters()});
  for (const int64_t asked : {1, 3, 4, 9})
    EXPECT_EQ(module.predict(data, {.num_batch = asked})[0].shape(), (Shape{std::min<int64_t>(asked, 4) * 10, 3}));
  data.reset();
  data.next();
  EXPECT_EQ(module.predict(data, {.reset = false})[0].shape(), (Shape{30, 3})) << "from where the iterator is";
}

TEST_F(AlwaysTheFirstClass, LogsTheMetricOfTheWholeEpochThoughASpeedometerResetsIt) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view message) { lines.emplace_back(message); });
  module.fit(data, {.batch_end_callback = {Speedometer(10, 1, /*auto_reset=*/true)},
                    .optimizer_params = {{"learning_rate", 0.0}},
                    .arg_params = parameters(),
                    .num_epoch = 2});
  set_log_sink({});
  for (const std::string epoch : {"Epoch[0]", "Epoch[1]"})
    EXPECT_EQ(std::count(lines.begin(), lines.end(), epoch + " Train-accuracy=0.500000"), 1) << comma_separated(lines);
  const auto last = std::find_if(lines.begin(), lines.end(),
                                 [](const std::string& line) { return line.find("Batch [2-3]") != std::string::npos; });
  ASSERT_NE(last, lines.end()) << comma_separated(lines);
  EXPECT_TRUE(last->ends_with("accuracy=0.000000")) << *last;
}

TEST(Module, CutsPaddingAlongTheAxisOfTheSamples) {
  // Three steps of five samples, of which two only fill the batch up.
  class Steps : public DataIter {
   public:
    std::vector<DataDesc> provide_data() const override { return {{"data", {3, 5}, DType::float32, "TN"}}; }
    std::vector<DataDesc> provide_label() const override { return {}; }
    void reset() override { given_ = false; }
    std::optional<DataBatch> next() override {
      if (std::exchange(given_, true)) return std::nullopt;
      return DataBatch{.data = {arange(0, 15).reshape({3, 5})}, .pad = 2};
    }

   private:
    bool given_ = false;
  } data;
  const Symbol input = Symbol::variable("data");
  const Symbol doubled = [&] {
    const AttrScope scope({{"__layout__", "TN"}});
    return input * 2;
  }();
  const Symbol total = [&] {
    const AttrScope scope({{"__layout__", "C"}});
    return apply("sum", input);
  }();
  const Symbol twice = apply("Concat", {input, input}, {{"dim", "0"}, {"num_args", "2"}});  // its first axis has 6
  Module module(Symbol::group({doubled, total, twice}), {.label_names = {}});
  module.bind(data.provide_data(), {}, {.for_training = false});
  module.init_params();
  const auto outputs = module.predict(data);
  EXPECT_EQ(outputs[0].shape(), (Shape{3, 3}));
  EXPECT_EQ(outputs[0].to_vector<float>(), (std::vector<float>{0, 2, 4, 10, 12, 14, 20, 22, 24}));
  EXPECT_EQ(outputs[1].to_vector<float>(), std::vector<float>{105});
  EXPECT_EQ(outputs[2].shape(), (Shape{6, 5})) << "an axis of another length is not that of the samples";
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

TEST(Module, AddsGradientsUpWhereThatIsAskedFor) {
  const DataBatch batch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}};
  for (const std::string request : {"write", "add"}) {
    Module module(small_network(), {.context = {cpu(0), cpu(1)}});
    module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}}, {.inputs_need_grad = true, .grad_req = request});
    module.init_params({.arg_params = first_values()});
    module.forward_backward(batch);
    const NDArray once = module.exec_group()->grad_arrays()[0][1].copy(), of_data = module.get_input_grads()[0].copy();
    module.forward_backward(batch);
    const double times = request == "add" ? 2 : 1;
    EXPECT_TRUE(all_close(module.exec_group()->grad_arrays()[0][1], once * times, {1e-5, 1e-6})) << request;
    EXPECT_TRUE(all_close(module.get_input_grads()[0], of_data * times, {1e-5, 1e-6})) << request;
    EXPECT_EQ(of_data.shape(), (Shape{10, 4}));
  }
}

TEST(Module, SharesParametersWithAnother) {
  Module first(small_network());
  first.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  first.init_params({.arg_params = first_values()});
  Module second(small_network());
  second.bind({{"data", {5, 4}}}, {{"softmax_label", {5}}}, {.shared_module = &first});
  EXPECT_TRUE(second.exec_group()->param_arrays()[0][0].same_memory(first.exec_group()->param_arrays()[0][0]));
}

TEST(Module, SeesWhatAModuleThatSharesItsParametersHasLearnt) {
  Module first(small_network(), {.context = {cpu(0), cpu(1)}}), second(small_network(), {.context = {cpu(0), cpu(1)}});
  first.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  first.init_params({.arg_params = first_values()});
  first.init_optimizer({.optimizer_params = {{"learning_rate", 0.1}}});
  second.bind({{"data", {4, 4}}}, {{"softmax_label", {4}}}, {.shared_module = &first});
  EXPECT_EQ(second.optimizer(), first.optimizer());
  second.forward_backward(DataBatch{.data = {random_array({4, 4}, 1)}, .label = {labels_of(4)}});
  second.update();
  expect_same_bits(first.get_params().arg_params, second.get_params().arg_params);
  EXPECT_FALSE(same_bits(first.get_params().arg_params.at("fc1_weight"), first_values().at("fc1_weight")));
  // Bound anew, it is on its own.
  second.bind({{"data", {4, 4}}}, {{"softmax_label", {4}}}, {.force_rebind = true});
  const NamedArrays before = first.get_params().arg_params;
  second.set_params(first_values(), {});
  expect_same_bits(first.get_params().arg_params, before);
}

TEST(Module, KeepsStatesThatNoIteratorProvides) {
  const Symbol net = linear_regression_output(
      fully_connected(Symbol::variable("data") + Symbol::variable("begin"), {.num_hidden = 2}, "fc"), {}, "out");
  Module module(net, {.label_names = {"out_label"}, .context = {cpu(0), cpu(1)}, .state_names = {"begin"}});
  EXPECT_EQ(module.param_names(), (std::vector<std::string>{"fc_weight", "fc_bias"}));
  module.bind({{"data", {6, 3}}}, {{"out_label", {6, 2}}});
  module.init_params();
  EXPECT_TRUE(same_bits(module.get_states()[0], zeros({6, 3})));
  const NDArray whole = random_array({6, 3}, 1);
  module.set_states({whole});
  EXPECT_TRUE(same_bits(module.get_states()[0], whole));
  EXPECT_TRUE(same_bits(module.get_states_per_device()[0][1].as_in_context(cpu(0)), whole.slice(3, 6).copy()));
  module.set_states(DataParallelExecutorGroup::PerDevice{{ones({3, 3}), full({3, 3}, 2)}});
  EXPECT_EQ(module.get_states()[0].slice(3, 4).to_vector<float>(), std::vector<float>(3, 2));
  module.set_states(0.5);
  EXPECT_TRUE(same_bits(module.get_states()[0], full({6, 3}, 0.5)));
}

TEST(Module, TakesABatchsArraysInTheOrderOfTheShapesItWasBoundWith) {
  Module module(Symbol::variable("a") - Symbol::variable("b"), {.data_names = {"a", "b"}, .label_names = {}});
  module.bind({{"b", {2, 3}}, {"a", {2, 3}}}, {}, {.inputs_need_grad = true});
  module.init_params();
  module.forward(DataBatch{.data = {ones({2, 3}), zeros({2, 3})}}, true);
  EXPECT_TRUE(same_bits(module.get_outputs()[0], full({2, 3}, -1)));
  module.backward({ones({2, 3})});
  EXPECT_TRUE(same_bits(module.get_input_grads()[0], full({2, 3}, -1)));  // of b
  EXPECT_EQ(module.data_shapes()[0].name, "b");
  EXPECT_EQ(module.data_names(), (std::vector<std::string>{"a", "b"}));
}

// Its forward pass halves the data, and its backward pass doubles the gradients of the bias.
class ModuleWithOwnPasses : public Module {
 public:
  using Module::Module;
  void forward(const DataBatch& batch, std::optional<bool> is_train) override {
    DataBatch halved = batch;
    halved.data[0] = batch.data[0] * 0.5;
    Module::forward(halved, is_train);
  }
  void backward(const std::vector<NDArray>& out_grads) override {
    Module::backward(out_grads);
    for (const auto& grads : exec_group()->grad_arrays())
      for (NDArray grad : grads)
        if (grad.shape().rank() == 1) grad *= 2;
  }
};

TEST(Module, RunsBothPassesAsAClassInheritingFromItWroteThem) {
  const DataBatch batch{.data = {random_array({4, 4}, 1)}, .label = {labels_of(4)}};
  const auto gradients_of = [&](Module& module, const std::function<void()>& run) {
    module.bind({{"data", {4, 4}}}, {{"softmax_label", {4}}});
    module.init_params({.arg_params = first_values()});
    run();
    std::vector<NDArray> gradients;
    for (const auto& grads : module.exec_group()->grad_arrays()) gradients.push_back(grads[0]);
    return gradients;
  };
  ModuleWithOwnPasses together(small_network()), apart(small_network());
  const auto actual = gradients_of(together, [&] { together.forward_backward(batch); });
  const auto expected = gradients_of(apart, [&] {
    apart.forward(batch, true);
    apart.backward({});
  });
  Module plain(small_network());
  const auto others = gradients_of(plain, [&] { plain.forward_backward(batch); });
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(same_bits(actual[i], expected[i])) << "gradient " << i;
    EXPECT_FALSE(same_bits(actual[i], others[i])) << "gradient " << i;
  }
}

TEST(Module, ForwardBackwardIsBothPassesForEveryShapeAndNumberOfContexts) {
  for (const auto& contexts : {std::vector<Context>{cpu(0)}, std::vector<Context>{cpu(0), cpu(1)}}) {
    Module together(small_network(), {.context = contexts}), apart(small_network(), {.context = contexts});
    for (Module* const module : {&together, &apart}) {
      module->bind({{"data", {4, 4}}}, {{"softmax_label", {4}}});
      module->init_params({.arg_params = first_values()});
    }
    for (const int64_t size : {4, 8, 4, 2, 8}) {
      const DataBatch batch{.data = {random_array({size, 4}, static_cast<uint64_t>(size))}, .label = {labels_of(size)}};
      together.forward_backward(batch);
      apart.forward(batch, true);
      apart.backward();
      EXPECT_TRUE(same_bits(together.get_outputs()[0], apart.get_outputs()[0])) << size;
      for (size_t i = 0; i < apart.exec_group()->grad_arrays().size(); ++i)
        for (size_t k = 0; k < contexts.size(); ++k)
          EXPECT_TRUE(same_bits(together.exec_group()->grad_arrays()[i][k], apart.exec_group()->grad_arrays()[i][k]))
              << "gradient " << i << " of context " << k << ", batch of " << size;
    }
  }
}

}  // namespace
}  // namespace symbind
