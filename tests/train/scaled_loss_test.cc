// Modules in float16: a step that overflows is left out, in fit() too, where the update waits for the check of the
// gradients after the next batch was prepared; and over several workers, which are threads here, by all that are in
// step with the one that overflowed.
#include "symbind/train/scaled_loss.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/kvstore/early_push.h"
#include "symbind/symbind.h"

#include "tests/kvstore/thread_transport.h"
#include "tests/support/arrays.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

using Floats = std::vector<float>;

// A label of 1e30 makes gradients overflow.
Symbol regression() {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 16}, "fc1");
  net = activation(net, {.act_type = act_type::relu});
  return linear_regression_output(fully_connected(net, {.num_hidden = 1}, "fc2"), {}, "out");
}

// Bound, with parameters, for batches of two rows.
std::unique_ptr<Module> make_module() {
  auto module = std::make_unique<Module>(regression(),
                                         ModuleOptions{.label_names = {"out_label"}, .compute_dtype = DType::float16});
  module->bind({{"data", {2, 4}}}, {{"out_label", {2, 1}}});
  module->init_params({.initializer = std::make_shared<init::Uniform>(0.1)});
  return module;
}

void step(Module& module, const NDArray& data, double label) {
  module.forward_backward({.data = {data}, .label = {full({2, 1}, label)}});
  module.update();
}

// ---- The scale on a device ------------------------------------------------------------------------------------------

// The gradients of a step, written by hand.
void set_gradients(const Module& module, bool finite) {
  const auto& grads = module.exec_group()->grad_arrays();
  for (const auto& each : grads) each[0].fill(1);
  if (!finite) grads.back()[0].fill(std::numeric_limits<double>::infinity());
}

// In the executor: what the next forward multiplies by, and its inverse.
std::pair<double, double> factors(const Module& module) {
  const NamedArrays& arrays = module.exec_group()->execs()[0]->arg_dict();
  return {arrays.at("_loss_scale").item(), arrays.at("_inverse_loss_scale").item()};
}

struct QueuedStep {
  NDArray is_taken;
  std::function<bool()> decision;
};
QueuedStep queue_step(ScaledLoss& loss, const DataParallelExecutorGroup& group) {
  const auto decision = loss.decide(group);
  decision->queue();
  return {decision->is_taken(), loss.decided()};
}

TEST(ScaledLossOnADevice, IsAdaptedAsOnTheHost) {
  const std::unique_ptr<Module> module = make_module();
  const DataParallelExecutorGroup& group = *module->exec_group();
  ScaledLoss queued;
  LossScale expected;
  for (int64_t i = 0; i < LossScale::steps_before_growth + 20; ++i) {
    const bool finite = i >= 3 && i != 9;
    set_gradients(*module, finite);
    queued.write(group);
    ASSERT_EQ(factors(*module).first, expected.value()) << "in step " << i;
    const QueuedStep step = queue_step(queued, group);
    expected.finish_step(finite);
    EXPECT_EQ(step.is_taken.item(), finite ? 1 : 0);
    EXPECT_EQ(step.decision(), finite);
    const std::pair<double, double> both{expected.value(), 1 / expected.value()};
    ASSERT_EQ(factors(*module), both) << "after step " << i;
    if (i % 2 == 0) {
      ASSERT_EQ(queued.scale().value(), expected.value()) << "after step " << i;
    }
  }
  EXPECT_EQ(queued.scale().value(), LossScale::first / 8);
  EXPECT_EQ(queued.scale().good_steps(), expected.good_steps());
}

TEST(ScaledLossOnADevice, ChangesPlacesWithTheHost) {
  const std::unique_ptr<Module> module = make_module();
  const DataParallelExecutorGroup& group = *module->exec_group();
  ScaledLoss scaled;
  LossScale expected;
  for (const auto& [by_device, finite] : std::vector<std::pair<bool, bool>>{
           {false, false}, {true, false}, {true, true}, {false, true}, {false, false}, {true, true}, {true, false}}) {
    set_gradients(*module, finite);
    scaled.write(group);
    EXPECT_EQ(factors(*module).first, expected.value());
    const bool taken =
        by_device ? queue_step(scaled, group).is_taken.item() != 0 : scaled.finish_step(group, /*store=*/nullptr);
    EXPECT_EQ(taken, finite);
    expected.finish_step(finite);
  }
  EXPECT_EQ(scaled.scale().value(), expected.value());
  EXPECT_EQ(scaled.scale().good_steps(), expected.good_steps());
  scaled.set_scale(LossScale(4, 7));
  scaled.write(group);
  EXPECT_EQ(factors(*module), (std::pair<double, double>{4, 0.25}));
}

TEST(ScaledLossOnADevice, IsTheSameWorkUntilItsArraysChange) {
  const std::unique_ptr<Module> module = make_module();
  const DataParallelExecutorGroup& group = *module->exec_group();
  ScaledLoss loss;
  set_gradients(*module, true);
  loss.write(group);
  queue_step(loss, group);
  const auto first = loss.decide(group);
  queue_step(loss, group);
  EXPECT_EQ(loss.decide(group), first);
  loss.set_scale(LossScale(4, 7));
  EXPECT_NE(loss.decide(group), first) << "the device gets the scale of the host";
}

TEST(ScaledLossOnADevice, IsThatOfTheModuleThatRanLast) {
  const std::unique_ptr<Module> one = make_module(), other = make_module();
  ScaledLoss first, second;
  second.share(first);
  for (const bool finite : {false, true, false}) {
    set_gradients(*one, finite);
    first.write(*one->exec_group());
    queue_step(first, *one->exec_group());
    second.write(*other->exec_group());
    EXPECT_EQ(factors(*other), factors(*one));
    set_gradients(*other, finite);
    queue_step(second, *other->exec_group());
    first.write(*one->exec_group());
    EXPECT_EQ(factors(*one), factors(*other));
  }
  EXPECT_EQ(factors(*one).first, LossScale::first / 16);
  EXPECT_EQ(first.scale().value(), LossScale::first / 16);
}

// ---- Over several workers -------------------------------------------------------------------------------------------

// What a worker has after each step.
struct Step {
  double scale;
  Floats weight;
  friend bool operator==(const Step&, const Step&) = default;
};
using Steps = std::vector<Step>;

// At first the scale is too large for all. Later a batch of worker 1 overflows.
constexpr int steps = 12, overflow_at = 9;

Steps train(Worker& worker, const std::string& type) {
  const std::unique_ptr<Module> module = make_module();
  module->init_optimizer({.kvstore = worker.store(type), .optimizer_params = {{"learning_rate", 0.1}}});
  Steps result;
  for (int i = 0; i < steps; ++i) {
    const bool overflows = i == overflow_at && worker.rank == 1;
    step(*module, random_array({2, 4}, static_cast<uint64_t>(10 * i + worker.rank)), overflows ? 1e30 : 1);
    result.push_back({module->loss_scale(), module->get_params().arg_params.at("fc1_weight").to_vector<float>()});
  }
  return result;
}

std::vector<Steps> train_all(int workers, const std::string& type) {
  std::vector<Steps> all(static_cast<size_t>(workers));
  const auto thrown =
      run_job(workers, [&](Worker& worker) { all[static_cast<size_t>(worker.rank)] = train(worker, type); });
  EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(workers)));
  return all;
}

TEST(ScaledLossOfWorkers, IsHalvedByAllWhereOneOverflows) {
  for (const std::string type : {"dist_sync", "horovod"})
    for (const int workers : {2, 4}) {
      const std::vector<Steps> all = train_all(workers, type);
      for (const Steps& each : all) EXPECT_TRUE(each == all[0]) << type << " with " << workers << " workers";
      const Steps& one = all[0];
      EXPECT_EQ(one[overflow_at].scale, one[overflow_at - 1].scale / 2);
      EXPECT_NE(one[overflow_at - 1].weight, one[overflow_at - 2].weight);
      EXPECT_EQ(one[overflow_at].weight, one[overflow_at - 1].weight);
      EXPECT_NE(one[steps - 1].weight, one[overflow_at].weight);
    }
}

TEST(ScaledLossOfWorkers, IsEachWorkersOwnInDistAsync) {
  const std::vector<Steps> all = train_all(2, "dist_async");
  EXPECT_EQ(all[0][overflow_at].scale, all[0][overflow_at - 1].scale);
  EXPECT_EQ(all[1][overflow_at].scale, all[1][overflow_at - 1].scale / 2);
  EXPECT_EQ(all[1][overflow_at].weight, all[1][overflow_at - 1].weight);
}

TEST(ScaledLossOfWorkers, BeginsWithOneScale) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const std::unique_ptr<Module> module = make_module();
    module->init_optimizer();
    step(*module, ones({2, 4}), worker.rank == 1 ? 1e30 : 0);
    EXPECT_EQ(module->loss_scale(), worker.rank == 1 ? LossScale::first / 2 : LossScale::first);
    module->init_optimizer({.kvstore = worker.store(), .force_init = true});
    EXPECT_EQ(module->loss_scale(), LossScale::first);
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

TEST(ScaledLossOfWorkers, NamesTheWorkerThatIsMissedAtTheCheck) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const std::unique_ptr<Module> module = make_module();
    module->init_optimizer({.kvstore = worker.store()});
    step(*module, ones({2, 4}), 1);
    if (worker.rank == 0) step(*module, ones({2, 4}), 1);
  });
  EXPECT_NE(thrown[0].find("worker 1 on host thread1 has ended, and is missed at the overflow check at step 2"),
            std::string::npos)
      << thrown[0];
}

// ---- In fit() -------------------------------------------------------------------------------------------------------

constexpr int fit_batches = 12;

// The batch of a step: its label overflows in one of them.
DataBatch batch_at(int step, int overflow) {
  return {.data = {random_array({2, 4}, static_cast<uint64_t>(step))},
          .label = {full({2, 1}, step == overflow ? 1e30 : 1)}};
}

// Calls `watch(step)` before it returns the batch of that step.
class WatchedIter final : public DataIter {
 public:
  explicit WatchedIter(std::function<void(int)> watch, int overflow = -1)
      : watch_(std::move(watch)), overflow_(overflow) {}
  std::vector<DataDesc> provide_data() const override { return {{"data", {2, 4}}}; }
  std::vector<DataDesc> provide_label() const override { return {{"out_label", {2, 1}}}; }
  void reset() override { step_ = 0; }
  std::optional<DataBatch> next() override {
    watch_(step_);
    if (step_ == fit_batches) return std::nullopt;
    return batch_at(step_++, overflow_);
  }

 private:
  std::function<void(int)> watch_;
  int overflow_, step_ = 0;
};

const NamedArrays fit_values{{"fc1_weight", random_array({16, 4}, 101, -0.1, 0.1)},
                             {"fc1_bias", zeros({16})},
                             {"fc2_weight", random_array({1, 16}, 102, -0.1, 0.1)},
                             {"fc2_bias", zeros({1})}};
const OptimizerParams fit_optimizer{{"learning_rate", 0.1}, {"momentum", 0.9}};

FitArgs fit_args() {
  return {.eval_metric = "mse", .optimizer_params = fit_optimizer, .arg_params = fit_values, .num_epoch = 1};
}

Floats weight_of(Module& module) { return module.get_params().arg_params.at("fc1_weight").to_vector<float>(); }

ModuleOptions in_float16(const std::vector<Context>& contexts) {
  return {.label_names = {"out_label"}, .context = contexts, .compute_dtype = DType::float16};
}

// The steps of fit() one by one, where update() waits itself.
Steps expected_steps(const std::vector<Context>& contexts, int overflow) {
  Module module(regression(), in_float16(contexts));
  module.bind({{"data", {2, 4}}}, {{"out_label", {2, 1}}});
  module.init_params({.arg_params = fit_values});
  module.init_optimizer({.optimizer_params = fit_optimizer});
  Steps result;
  for (int i = 0; i < fit_batches; ++i) {
    module.forward_backward(batch_at(i, overflow));
    module.update();
    EXPECT_FALSE(module.has_unfinished_update());
    result.push_back({module.loss_scale(), weight_of(module)});
  }
  return result;
}

TEST(ScaledLossInFit, GivesTheSameBitsWhenTheUpdateIsFinishedLater) {
  const Quiet quiet;
  std::vector<std::vector<Context>> lists{{cpu(0)}, {cpu(0), cpu(1)}};
  for (const Context context : all_devices())
    if (context.is_gpu()) lists.push_back({context});
  for (const auto& contexts : lists) {
    const Steps expected = expected_steps(contexts, overflow_at);
    EXPECT_EQ(expected[overflow_at].scale, expected[overflow_at - 1].scale / 2);
    Module module(regression(), in_float16(contexts));
    Steps steps_seen;
    int unfinished = 0;
    WatchedIter data([&](int step) { unfinished += step > 0 && module.has_unfinished_update(); }, overflow_at);
    FitArgs args = fit_args();
    args.batch_end_callback = {[&](const BatchEndParam&) {
      EXPECT_FALSE(module.has_unfinished_update());
      steps_seen.push_back({module.loss_scale(), weight_of(module)});
    }};
    module.fit(data, args);
    EXPECT_TRUE(steps_seen == expected) << contexts.size() << " contexts, the first " << contexts[0];
    if (contexts[0].is_gpu())
      EXPECT_LT(unfinished, fit_batches / 2) << "once there are states, nothing waits for the check";
    else
      EXPECT_EQ(unfinished, fit_batches) << "the next batch is made while the gradients are checked";
  }
}

// A store of one worker that notes what it is given during backward.
class EarlyStore : public KVStore, public EarlyPush {
 public:
  explicit EarlyStore(bool returns_sums) : returns_sums_(returns_sums) {}
  bool may_push_early() const override { return true; }
  bool returns_sums() const override { return returns_sums_; }
  void push_early(const Keys& keys, const Values&, int, const DeviceEventPtr&) override { early += keys.size(); }

  void init(const Keys& keys, const std::vector<NDArray>& values) override { sums_->init(keys, values); }
  void push(const Keys& keys, const Values& values, int priority) override { sums_->push(keys, values, priority); }
  void pull(const Keys& keys, const Values& outs, int priority) override { sums_->pull(keys, outs, priority); }
  void row_sparse_pull(const Keys&, const Values&, const Values&, int) override {}
  void set_optimizer(OptimizerPtr) override {}
  void set_updater(UpdateFunction) override {}
  void set_gradient_compression(const std::map<std::string, std::string>&) override {}
  std::string type() const override { return "early"; }
  bool has_optimizer() const override { return false; }
  std::string get_optimizer_states(bool) const override { return ""; }
  void set_optimizer_states(const SavedStates&) override {}

  size_t early = 0;  // keys

 private:
  const bool returns_sums_;
  const KVStorePtr sums_ = KVStore::create("local");
};

TEST(ScaledLossInFit, ExchangesGradientsDuringBackwardWhereTheirSumsAreChecked) {
  const Quiet quiet;
  const Steps expected = expected_steps({cpu()}, overflow_at);
  for (const bool returns_sums : {true, false}) {
    const auto store = std::make_shared<EarlyStore>(returns_sums);
    Module module(regression(), in_float16({cpu()}));
    Steps seen;
    WatchedIter data([](int) {}, overflow_at);
    FitArgs args = fit_args();
    args.kvstore = KVStorePtr(store);
    args.batch_end_callback = {[&](const BatchEndParam&) { seen.push_back({module.loss_scale(), weight_of(module)}); }};
    module.fit(data, args);
    EXPECT_TRUE(seen == expected) << returns_sums;
    EXPECT_EQ(store->early, returns_sums ? fit_batches * fit_values.size() : 0);
  }
}

// Its two workers cannot decide jointly.
class TwoWorkers final : public EarlyStore {
 public:
  TwoWorkers() : EarlyStore(true) {}
  int num_workers() const override { return 2; }
};

TEST(ScaledLossInFit, IsRefusedWhereWorkersCannotAgree) {
  const Quiet quiet;
  WatchedIter data([](int) {});
  FitArgs args = fit_args();
  args.kvstore = KVStorePtr(std::make_shared<TwoWorkers>());
  Module module(regression(), in_float16({cpu()}));
  EXPECT_TRUE(fails_with([&] { module.fit(data, args); }, "the workers of early cannot agree", "bfloat16"));
  Module bound(regression(), {.label_names = {"out_label"}});
  bound.fit(data, args);
  args.force_rebind = true;
  args.compute_dtype = DType::float16;
  EXPECT_TRUE(fails_with([&] { bound.fit(data, args); }, "the workers of early cannot agree", "bfloat16"));
  EXPECT_TRUE(bound.binded);
}

// Worker 1 overflows in one step. The steps of all workers are those of update() after each backward.
TEST(ScaledLossInFit, WorkersThatCheckSumsDecideAlike) {
  const Quiet quiet;
  const auto thrown = run_job(2, [&](Worker& worker) {
    const int overflow = worker.rank == 1 ? overflow_at : -1;
    const auto steps_of = [&](bool in_fit) {
      Module module(regression(), in_float16({cpu()}));
      Steps seen;
      const auto look = [&] { seen.push_back({module.loss_scale(), weight_of(module)}); };
      WatchedIter data([](int) {}, overflow);
      FitArgs args = fit_args();
      args.kvstore = worker.store("horovod");
      if (in_fit) {
        args.batch_end_callback = {[&](const BatchEndParam&) { look(); }};
        module.fit(data, args);
        return seen;
      }
      module.bind(data.provide_data(), data.provide_label());
      module.init_params({.arg_params = fit_values});
      module.init_optimizer({.kvstore = args.kvstore, .optimizer_params = fit_optimizer});
      while (const auto batch = data.next()) {
        module.forward_backward(*batch);
        module.update();
        look();
      }
      return seen;
    };
    const Steps one_by_one = steps_of(false);
    EXPECT_EQ(one_by_one[overflow_at].scale, one_by_one[overflow_at - 1].scale / 2) << worker.rank;
    EXPECT_EQ(one_by_one[overflow_at].weight, one_by_one[overflow_at - 1].weight) << worker.rank;
    EXPECT_NE(one_by_one[overflow_at - 1].weight, one_by_one[overflow_at - 2].weight) << worker.rank;
    EXPECT_TRUE(steps_of(true) == one_by_one) << worker.rank;
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

TEST(ScaledLossInFit, AnIteratorThatReadsTheParametersFindsThemUpdated) {
  const Quiet quiet;
  const Steps expected = expected_steps({cpu()}, overflow_at);
  Module module(regression(), in_float16({cpu()}));
  int compared = 0;
  WatchedIter data(
      [&](int step) {
        if (step == 0) return;
        EXPECT_EQ(weight_of(module), expected[static_cast<size_t>(step) - 1].weight) << step;
        EXPECT_FALSE(module.has_unfinished_update());
        ++compared;
      },
      overflow_at);
  module.fit(data, fit_args());
  EXPECT_EQ(compared, fit_batches);
}

TEST(ScaledLossInFit, AnErrorInTheIteratorDoesNotLoseTheUpdate) {
  const Quiet quiet;
  const Steps expected = expected_steps({cpu()}, overflow_at);
  Module module(regression(), in_float16({cpu()}));
  WatchedIter data([](int step) { require(step != 8, "the disk is gone"); }, overflow_at);
  EXPECT_TRUE(fails_with([&] { module.fit(data, fit_args()); }, "the disk is gone"));
  EXPECT_EQ(weight_of(module), expected[7].weight);
}

TEST(ScaledLossInFit, BucketsFinishTheUpdateOfTheCurrentOne) {
  const Quiet quiet;
  const Steps expected = expected_steps({cpu()}, -1);
  BucketingModule module(
      [](const BucketKey&) {
        return BucketNetwork{regression(), {"data"}, {"out_label"}};
      },
      {.default_bucket_key = 0, .compute_dtype = DType::float16});
  // Every second batch is of another bucket, which is bound while the update before it is not finished.
  class Buckets final : public DataIter {
   public:
    std::vector<DataDesc> provide_data() const override { return {{"data", {2, 4}}}; }
    std::vector<DataDesc> provide_label() const override { return {{"out_label", {2, 1}}}; }
    void reset() override { step_ = 0; }
    std::optional<DataBatch> next() override {
      if (step_ == fit_batches) return std::nullopt;
      DataBatch batch = batch_at(step_, -1);
      batch.bucket_key = step_++ % 2;
      return batch;
    }

   private:
    int step_ = 0;
  } data;
  std::vector<Floats> weights;
  FitArgs args = fit_args();
  args.batch_end_callback = {[&](const BatchEndParam&) {
    weights.push_back(module.get_params().arg_params.at("fc1_weight").to_vector<float>());
  }};
  module.fit(data, args);
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(weights[i], expected[i].weight) << i;
}

}  // namespace
}  // namespace symbind::testing
