// What a user may get wrong with a Module: each is an error that says what, and leaves the module as it was.
// (A full disk: checkpoint_test.cc. An iterator that throws: module_test.cc.)
#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

std::unique_ptr<Module> bound_module(std::vector<Context> context = {cpu()}) {
  auto module = std::make_unique<Module>(small_network(), ModuleOptions{.context = std::move(context)});
  module->bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  module->init_params({.arg_params = first_values()});
  return module;
}

void expect_still_works(Module& module) {
  module.forward(DataBatch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}}, true);
  EXPECT_EQ(module.get_outputs()[0].shape(), (Shape{10, 3}));
  expect_same_bits(module.get_params().arg_params, first_values());
}

TEST(BadInput, LabelsAndDataOfDifferentBatchSizes) {
  Module unbound(small_network());
  EXPECT_TRUE(fails_with(
      [&] {
        unbound.bind({{"data", {10, 4}}}, {{"softmax_label", {9}}});
      },
      "'data'", "10", "'softmax_label'", "9"));
  const auto module = bound_module({cpu(0), cpu(1)});
  const DataBatch batch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(9)}};
  EXPECT_TRUE(fails_with([&] { module->forward(batch, true); }, "'data'", "10", "'softmax_label'", "9"));
  expect_still_works(*module);
}

TEST(BadInput, MoreDevicesThanSamples) {
  Module unbound(small_network(), {.context = {cpu(0), cpu(1), cpu(2)}});
  EXPECT_TRUE(fails_with(
      [&] {
        unbound.bind({{"data", {2, 4}}}, {{"softmax_label", {2}}});
      },
      "batch of 2", "3 devices"));
  const auto module = bound_module({cpu(0), cpu(1), cpu(2)});
  const DataBatch batch{.data = {random_array({2, 4}, 1)}, .label = {labels_of(2)}};
  EXPECT_TRUE(fails_with([&] { module->forward(batch, true); }, "batch of 2", "3 devices"));
  expect_still_works(*module);
  // A work load so small that a device would get nothing.
  Module uneven(small_network(), {.context = {cpu(0), cpu(1)}, .work_load_list = {1, 1000}});
  EXPECT_TRUE(fails_with(
      [&] {
        uneven.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
      },
      "device 0", "work load"));
}

TEST(BadInput, UnknownNames) {
  EXPECT_TRUE(fails_with([] { Module module(small_network(), {.state_names = {"begin"}}); }, "state_names", "begin",
                         "data, softmax_label"));
  Module unbound(small_network());
  EXPECT_TRUE(fails_with([&] { unbound.bind({{"image", {10, 4}}}, {{"softmax_label", {10}}}); }, "image", "data"));
  const auto module = bound_module();
  NamedArrays params = first_values();
  params["fc7_weight"] = zeros({1});
  EXPECT_TRUE(fails_with([&] { module->set_params(params, {}, /*allow_missing=*/true); }, "fc7_weight", "allow_extra"));
  EXPECT_TRUE(fails_with(
      [&] {
        module->set_params(first_values(), {{"bn_mean", zeros({1})}}, /*allow_missing=*/true);
      },
      "bn_mean", "allow_extra"));
  expect_still_works(*module);
  module->set_params(params, {}, /*allow_missing=*/true, /*force_init=*/true, /*allow_extra=*/true);
  expect_still_works(*module);
}

TEST(BadInput, ParametersThatTheNetworkDoesNotHaveAreWarnedOf) {
  const auto module = bound_module();
  NamedArrays params = first_values();
  params["fc7_weight"] = zeros({1});
  const auto warnings_of = [&](bool allow_extra) {
    std::string warnings;
    const LogSink before = set_log_sink([&](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning) warnings += message;
    });
    module->set_params(params, {}, /*allow_missing=*/false, /*force_init=*/true, allow_extra);
    set_log_sink(before);
    return warnings;
  };
  EXPECT_NE(warnings_of(false).find("fc7_weight"), std::string::npos);
  EXPECT_EQ(warnings_of(true), "");
  expect_still_works(*module);
}

TEST(BadInput, AnUnknownFixedParameterListsTheParameters) {
  const std::string message = error_of([] { Module module(small_network(), {.fixed_param_names = {"fc9_weight"}}); });
  EXPECT_NE(message.find("fc1_weight, fc1_bias, fc2_weight, fc2_bias"), std::string::npos) << message;
  EXPECT_EQ(message.find("softmax_label"), std::string::npos) << message;
}

TEST(BadInput, ANullArrayInABatch) {
  const auto module = bound_module();
  EXPECT_TRUE(fails_with([&] { module->forward(DataBatch{.data = {NDArray()}}, false); }, "'data'", "null"));
  const DataBatch batch{.data = {random_array({10, 4}, 1)}, .label = {NDArray()}};
  EXPECT_TRUE(fails_with([&] { module->forward(batch, true); }, "'softmax_label'", "null"));
  expect_still_works(*module);
}

TEST(BadInput, PaddingOutsideOfTheBatch) {
  const auto module = bound_module();
  for (const int64_t pad : {-1, 11}) {
    const DataBatch batch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}, .pad = pad};
    EXPECT_TRUE(fails_with([&] { module->forward(batch, false); }, "pad", "10 samples", std::to_string(pad)));
  }
  expect_still_works(*module);
}

TEST(BadInput, AnUnknownStoreOnOneContext) {
  const auto module = bound_module();
  EXPECT_TRUE(fails_with([&] { module->init_optimizer({.kvstore = "locol"}); }, "locol", "local", "device"));
  module->init_optimizer({.kvstore = "nccl"});  // one context needs no store, so none has to be available
  EXPECT_EQ(module->kvstore(), nullptr);
}

TEST(BadInput, NullMetricsOptimizersAndCallbacks) {
  const char* no_name = nullptr;
  EXPECT_TRUE(fails_with([] { MetricArg metric{EvalMetricPtr()}; }, "metric", "null"));
  EXPECT_TRUE(fails_with([&] { MetricArg metric(no_name); }, "metric", "null"));
  EXPECT_TRUE(fails_with([] { OptimizerArg optimizer{OptimizerPtr()}; }, "optimizer", "null"));
  EXPECT_TRUE(fails_with([&] { OptimizerArg optimizer(no_name); }, "optimizer", "null"));
  const auto module = bound_module();
  NDArrayIter data = batches();
  const BatchEndCallback after_batch = [](const BatchEndParam&) {};
  const auto fit = [&](FitArgs args) {
    args.num_epoch = 1;
    module->fit(data, args);
  };
  EXPECT_TRUE(fails_with([&] { fit({.epoch_end_callback = {nullptr}}); }, "epoch_end_callback 0 of 1", "empty"));
  EXPECT_TRUE(fails_with(
      [&] {
        fit({.batch_end_callback = {after_batch, {}}});
      },
      "batch_end_callback 1 of 2", "empty"));
  EXPECT_TRUE(fails_with([&] { fit({.eval_end_callback = {{}}}); }, "eval_end_callback", "empty"));
  EXPECT_TRUE(fails_with([&] { fit({.eval_batch_end_callback = {{}}}); }, "eval_batch_end_callback", "empty"));
  EXPECT_TRUE(fails_with([&] { module->score(data, "acc", {.batch_end_callback = {{}}}); }, "batch_end_callback"));
  EXPECT_TRUE(fails_with([&] { module->score(data, "acc", {.score_end_callback = {{}}}); }, "score_end_callback"));
  EXPECT_TRUE(fails_with([&] { module->iter_predict(data, nullptr); }, "iter_predict"));
  expect_still_works(*module);
}

TEST(BadInput, AnEpochWithoutABatch) {
  const Quiet quiet;
  const auto module = bound_module();
  NDArrayIter data = batches();
  while (data.next()) {
  }
  EXPECT_TRUE(fails_with([&] { module->fit(data, {.num_epoch = 1}); }, "no batch", "epoch 0", "reset()"));
  expect_still_works(*module);
  data.reset();
  module->fit(data, {.num_epoch = 1});
}

TEST(BadInput, LearningRatesThatAreNotFinite) {
  const auto module = bound_module();
  for (const double rate : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    EXPECT_TRUE(fails_with(
        [&] {
          module->init_optimizer({.optimizer_params = {{"learning_rate", rate}}});
        },
        "learning_rate", "finite"));
  EXPECT_FALSE(module->optimizer_initialized);
}

TEST(BadInput, ArgumentsOfOptimizersThatAreNaN) {
  for (const char* name : {"momentum", "wd", "clip_gradient", "rescale_grad", "clip_global_norm"})
    EXPECT_TRUE(fails_with([&] { Optimizer::create("sgd", {{name, std::nan("")}}); }, name, "finite", "nan"));
  EXPECT_TRUE(fails_with([] { Optimizer::create("adam", {{"beta1", "nan"}}); }, "beta1", "finite"));
  EXPECT_NO_THROW(Optimizer::create("sgd", {{"clip_gradient", HUGE_VAL}}));
}

TEST(BadInput, AParameterOfTheWrongShapeInACheckpoint) {
  const TempDir folder;
  const std::string prefix = folder.file("net");
  NamedArrays params = first_values();
  params["fc2_weight"] = zeros({3, 9});
  save_checkpoint(prefix, 1, small_network(), params, {});
  const auto loaded = Module::load(prefix, 1);
  const auto bind = [&] { loaded->bind({{"data", {10, 4}}}, {{"softmax_label", {10}}}); };
  EXPECT_TRUE(fails_with(bind, "fc2_weight", "(3,8)", "(3,9)"));

  const auto module = bound_module();
  EXPECT_TRUE(fails_with([&] { module->load_params(params_path(prefix, 1)); }, "fc2_weight", "(3,8)", "(3,9)"));
  expect_still_works(*module);
}

TEST(BadInput, AParameterMissingInACheckpoint) {
  const TempDir folder;
  const std::string prefix = folder.file("net");
  NamedArrays params = first_values();
  params.erase("fc2_bias");
  save_checkpoint(prefix, 1, small_network(), params, {});
  const auto loaded = Module::load(prefix, 1);
  EXPECT_TRUE(fails_with([&] { loaded->bind({{"data", {10, 4}}}, {{"softmax_label", {10}}}); }, "fc2_bias"));
}

TEST(BadInput, AMisspeltOptimizerArgument) {
  const auto module = bound_module();
  EXPECT_TRUE(fails_with(
      [&] {
        module->init_optimizer({.optimizer_params = {{"momentun", 0.9}}});
      },
      "momentun", "momentum"));
  EXPECT_TRUE(fails_with([&] { module->init_optimizer({.optimizer = "sgdd"}); }, "sgdd", "sgd"));
  EXPECT_FALSE(module->optimizer_initialized);
  module->init_optimizer({.optimizer_params = {{"momentum", 0.9}}});
  EXPECT_TRUE(module->optimizer_initialized);
}

TEST(BadInput, StatesOfAnotherOptimizer) {
  const TempDir folder;
  const std::string path = folder.file("net-0001.states");
  const auto adam = bound_module({cpu(0), cpu(1)});
  adam->init_optimizer({.optimizer = "adam"});
  adam->forward_backward(DataBatch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}});
  adam->update();
  adam->save_optimizer_states(path);
  for (const KVStoreArg& store : {KVStoreArg(nullptr), KVStoreArg("local")}) {
    const auto module = bound_module({cpu(0), cpu(1)});
    module->init_optimizer({.kvstore = store, .optimizer_params = {{"momentum", 0.9}}});
    EXPECT_TRUE(fails_with([&] { module->load_optimizer_states(path); }, path, "adam", "sgd"));
    EXPECT_EQ(module->optimizer()->num_update(), 0);
    expect_still_works(*module);
  }
}

TEST(BadInput, APickleWithAnythingForeign) {
  const TempDir folder;
  const std::string path = folder.file("net-0001.states");
  write_file(path, "cos\nsystem\n(S'echo hello'\ntR.");
  const auto module = bound_module();
  module->init_optimizer({});
  EXPECT_TRUE(fails_with([&] { module->load_optimizer_states(path); }, path, "at offset 0", "os.system"));
  write_file(path, read_file(source_dir() + "/tests/oracle/recorded/files/sgd_momentum.states").substr(0, 100));
  EXPECT_TRUE(fails_with([&] { module->load_optimizer_states(path); }, path, "at offset"));
  expect_still_works(*module);
}

TEST(BadInput, CallsInTheWrongOrder) {
  Module module(small_network());
  const DataBatch batch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}};
  EXPECT_TRUE(fails_with([&] { module.init_params(); }, "init_params", "call bind first"));
  EXPECT_TRUE(fails_with([&] { module.forward(batch); }, "forward", "bind and init_params"));
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  EXPECT_TRUE(fails_with([&] { module.init_optimizer(); }, "init_optimizer", "init_params"));
  EXPECT_TRUE(fails_with([&] { module.get_params(); }, "get_params", "init_params"));
  module.init_params();
  EXPECT_TRUE(fails_with([&] { module.update(); }, "update", "init_optimizer"));
  EXPECT_TRUE(fails_with([&] { module.save_checkpoint("unused", 1, true); }, "optimizer"));
  EXPECT_TRUE(fails_with(
      [&] {
        module.bind({{"data", {10, 4}}}, {}, {.for_training = false, .inputs_need_grad = true, .force_rebind = true});
      },
      "inputs_need_grad", "for_training"));
}

TEST(BadInput, AskingBeforeBinding) {
  const auto metric = EvalMetric::create("acc");
  Module unbound(small_network());
  EXPECT_TRUE(fails_with([&] { unbound.update_metric(*metric, {labels_of(10)}); }, "bind"));
  EXPECT_TRUE(fails_with([&] { unbound.get_outputs_per_device(); }, "bind"));
  EXPECT_TRUE(fails_with([&] { unbound.get_input_grads_per_device(); }, "bind"));

  const auto module = bound_module();
  module->init_optimizer();
  module->reset_bind();
  EXPECT_TRUE(fails_with([&] { module->load_optimizer_states("nothing.states"); }, "bind"));
  module->bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  expect_still_works(*module);
}

TEST(BadInput, ABatchThatDescribesNothing) {
  const auto module = bound_module();
  DataBatch batch{.data = {random_array({10, 4}, 1)}};
  batch.provide_data.emplace();
  EXPECT_TRUE(fails_with([&] { module->forward(batch, false); }, "provide_data", "0", "1"));
  expect_still_works(*module);
}

TEST(BadInput, AnOptimizerThatDoesNotExistLeavesTheOneThatWas) {
  const auto module = bound_module({cpu(0), cpu(1)});
  module->init_optimizer({.kvstore = "local"});
  EXPECT_TRUE(fails_with(
      [&] { module->init_optimizer({.kvstore = nullptr, .optimizer = "nonsense", .force_init = true}); }, "nonsense"));
  module->forward_backward(DataBatch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}});
  module->update();
  EXPECT_FALSE(same_bits(module->get_params().arg_params.at("fc1_weight"), first_values().at("fc1_weight")));
}

// The one module's parameters are a part of the other's.
TEST(SharedModule, FetchingAPartLeavesTheRestDirty) {
  const auto whole = bound_module();
  whole->init_optimizer();
  Module part(activation(fully_connected(Symbol::variable("data"), {.num_hidden = 8}, "fc1"), {.act_type = "tanh"}),
              {.label_names = {}});
  part.bind({{"data", {10, 4}}}, {}, {.shared_module = whole.get()});
  whole->forward_backward(DataBatch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}});
  whole->update();
  part.get_params();
  const NDArray on_device = whole->exec_group()->param_arrays()[2][0];
  EXPECT_TRUE(same_bits(whole->get_params().arg_params.at("fc2_weight"), on_device));
}

TEST(SharedModule, MaySetWhatItsGetParamsReturns) {
  const Quiet quiet;
  const auto whole = bound_module();
  Module part(softmax_output(fully_connected(Symbol::variable("data"), {.num_hidden = 8}, "fc1"), {}, "softmax"));
  part.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}}, {.shared_module = whole.get()});
  const BaseModule::Params params = part.get_params();  // fc2's are there too
  ASSERT_TRUE(params.arg_params.contains("fc2_weight"));
  for (const bool allow_missing : {false, true}) part.set_params(params.arg_params, params.aux_params, allow_missing);
  NDArrayIter data = batches();
  part.fit(data, {.num_epoch = 1});  // which does so at the end of an epoch
}

}  // namespace
}  // namespace symbind::testing
