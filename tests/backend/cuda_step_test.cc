// Training steps on a GPU as one launch: the update of fit() is a part of the captured step, and the numbers are those
// of forward, backward and update one after the other.
#include <gtest/gtest.h>

#include "symbind/exec/following_work.h"
#include "symbind/optim/rule_optimizer.h"
#include "symbind/passes/step_capture.h"
#include "symbind/passes/target.h"
#include "symbind/symbind.h"

#include "tests/support/arrays.h"
#include "tests/support/gpu_test.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

using CudaStep = GpuTest;

// ---- Work that follows captured work --------------------------------------------------------------------------------

class FollowedSteps : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    a = zeros({1000}, gpu(0));
    b = zeros({1000}, gpu(0));
  }
  // a becomes a + 1, then b becomes a times the factor.
  std::unique_ptr<Captured> capture(double factor, bool by_need) {
    const auto add = [this] { invoke("_plus_scalar", {a}, {{"scalar", "1"}}, {.out = {a}}); };
    if (!by_need) return target().capture(Device::get(gpu(0)), add, {{times(factor)}});
    const std::vector<std::vector<size_t>> waits{{}};
    return dynamic_cast<StepCapture&>(target()).capture_steps(Device::get(gpu(0)), waits, [&](size_t) { add(); }, {},
                                                              {}, {{{0, times(factor)}}});
  }
  QueueWork times(double factor) {
    return [=, this] { invoke("_mul_scalar", {a}, {{"scalar", std::to_string(factor)}}, {.out = {b}}); };
  }
  static Target& target() { return Target::get(gpu(0)); }
  float first_of(const NDArray& array) { return array.to_vector<float>()[0]; }

  NDArray a, b;
};

TEST_F(FollowedSteps, AreOneLaunchWithReplaceableArguments) {
  for (const bool by_need : {false, true}) {
    a.fill(0);
    times(1)();  // everything is loaded
    const auto captured = capture(2, by_need);
    ASSERT_NE(captured, nullptr);
    captured->launch();
    EXPECT_EQ(first_of(b), 2);
    ASSERT_TRUE(captured->replace_following(0, times(10)));
    captured->launch();
    EXPECT_EQ(first_of(a), 2);
    EXPECT_EQ(first_of(b), 20);
    captured->launch();  // replaced while it may still run
    ASSERT_TRUE(captured->replace_following(0, times(100)));
    captured->launch();
    EXPECT_EQ(first_of(b), 400);
  }
}

// a becomes a + 1, which the pieces read, and then a + 100, which nothing waits for.
TEST_F(FollowedSteps, MayFollowASingleStep) {
  auto& by_need = dynamic_cast<StepCapture&>(target());
  const NDArray c = zeros({1000}, gpu(0)), d = zeros({1000}, gpu(0));
  const auto add = [&](const NDArray& to, const NDArray& from, const char* scalar) {
    return [=] { invoke("_plus_scalar", {from}, {{"scalar", scalar}}, {.out = {to}}); };
  };
  const auto steps = [&](size_t step) { step == 0 ? add(a, a, "1")() : add(d, a, "100")(); };
  const std::vector<StepCapture::Following> following{{1, add(d, d, "1000")}, {0, times(2)}, {0, add(c, b, "1")}};
  for (size_t step = 0; step < 2; ++step) steps(step);  // everything is loaded
  for (const auto& piece : following) piece.queue();
  a.fill(0);
  const std::vector<std::vector<size_t>> waits{{}, {0}};
  const auto captured = by_need.capture_steps(Device::get(gpu(0)), waits, steps, {}, {}, following);
  ASSERT_NE(captured, nullptr);
  for (int run = 1; run <= 5; ++run) {
    captured->launch();
    EXPECT_EQ(first_of(a), run);
    EXPECT_EQ(first_of(b), 2 * run);
    EXPECT_EQ(first_of(c), 2 * run + 1) << "the second piece after the step follows the first";
    EXPECT_EQ(first_of(d), 1100 + run);
  }
  ASSERT_TRUE(captured->replace_following(1, times(10)));
  captured->launch();
  EXPECT_EQ(first_of(b), 60);
  EXPECT_EQ(first_of(c), 61);
}

TEST_F(FollowedSteps, RefuseOtherKernels) {
  const auto captured = capture(2, false);
  ASSERT_NE(captured, nullptr);
  EXPECT_FALSE(captured->replace_following(0, [&] {
    times(3)();
    times(4)();
  }));
}

TEST_F(FollowedSteps, RefuseWorkThatAllocates) {
  const QueueWork following[] = {[&] { b = a + 1; }};
  EXPECT_EQ(target().capture(Device::get(gpu(0)), times(1), following), nullptr);
  EXPECT_TRUE(all_close((a + 1).as_copy_in(cpu()), ones({1000}))) << "allocation is possible again";
  const auto captured = capture(2, false);
  EXPECT_FALSE(captured->replace_following(0, [&] { b = a + 1; }));
}

// ---- Executors ------------------------------------------------------------------------------------------------------

class AddOne final : public FollowingWork {
 public:
  explicit AddOne(const NDArray& array) : array_(array) {}
  void queue() const override { invoke("_plus_scalar", {array_}, {{"scalar", "1"}}, {.out = {array_}}); }
  void mark_written() const override { array_.storage().bump(); }

 private:
  NDArray array_;
};

TEST_F(CudaStep, AnExecutorQueuesTheWorkThatFollowsOnceItIsCaptured) {
  const auto executor = simple_bind(small_network(), gpu(0), {{"data", {10, 4}}}, {.grad_req = "parameters"});
  for (const auto& [name, value] : first_values()) value.copyto(executor->arg_dict().at(name));
  const NDArray count = zeros({1}, gpu(0));
  const FollowingWorkPtr work = std::make_shared<AddOne>(count);
  int taken = 0;
  for (int run = 0; run < 8; ++run) {
    const uint64_t version = count.storage().version();
    FollowedBy following([&] { return std::vector<FollowingWorkPtr>{work}; });
    executor->forward_backward({{"data", random_array({10, 4}, static_cast<uint64_t>(run))}});
    taken += following.is_taken();
    EXPECT_EQ(following.is_taken(), run >= 2) << run;
    EXPECT_EQ(count.storage().version() > version, following.is_taken());
    EXPECT_EQ(count.to_vector<float>()[0], static_cast<float>(taken));
  }
}

TEST_F(CudaStep, NothingFollowsCallsOfForwardAndBackward) {
  const auto executor = simple_bind(small_network(), gpu(0), {{"data", {10, 4}}}, {.grad_req = "parameters"});
  for (int run = 0; run < 4; ++run) {
    FollowedBy following([]() -> std::vector<FollowingWorkPtr> { throw Error("not asked for"); });
    executor->forward(true);
    executor->backward();
    EXPECT_FALSE(following.is_taken());
  }
}

// ---- Modules --------------------------------------------------------------------------------------------------------

// SGD that counts how often the host queues it.
class CountedSgd final : public UpdateRule {
 public:
  explicit CountedSgd(int& queued) : queued_(queued) {}
  std::string name() const override { return "counted_sgd"; }
  StateTree create_state(const std::string&, const NDArray&) const override { return {}; }
  void update(const Step& step, const StepOptions& options) override {
    ++queued_;
    invoke(sgd_update, {step.weight, step.grad}, {.lr = step.lr, .wd = step.wd, .rescale_grad = options.rescale_grad},
           {.out = {step.weight}});
  }
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  bool is_one_operator() const override { return true; }
  Repeats repeats() const override { return Repeats::without_count; }

 private:
  int& queued_;
};

TEST_F(CudaStep, FitQueuesTheUpdateWithTheStep) {
  const Quiet quiet;
  const int parameters = 4;
  for (const DType dtype : {DType::none, DType::bfloat16, DType::float16}) {
    int queued = 0;
    NDArrayIter data = batches(200);  // 20 of 10 samples
    Module module(small_network(), {.context = {gpu(0)}, .compute_dtype = dtype});
    const OptimizerPtr sgd = std::make_shared<RuleOptimizer>(std::make_unique<CountedSgd>(queued), OptimizerParams{});
    module.fit(data, {.optimizer = sgd, .arg_params = first_values(), .num_epoch = 2});
    // In float16 gradients overflow until the scale is small enough.
    EXPECT_GE(module.optimizer()->num_update(), dtype == DType::float16 ? 30 : 40) << dtype;
    EXPECT_LE(queued, 3 * parameters) << dtype << ": two steps before the capture, and the capture";
  }
}

struct Way {
  std::string optimizer;
  OptimizerParams params = {};
  bool has_schedule = false;
};

struct After {
  NamedArrays params;
  std::string states;
  int64_t num_update;
  double scale;
};

OptimizerPtr made(const Way& way) {
  OptimizerParams params = way.params;
  const LRSchedulerPtr schedule =
      std::make_shared<FactorScheduler>(FactorSchedule{.step = 3, .factor = 0.75, .base_lr = 0.1});
  if (way.has_schedule) params.insert_or_assign("lr_scheduler", schedule);
  OptimizerPtr optimizer = Optimizer::create(way.optimizer, params);
  optimizer->rescale_grad = 0.1;
  return optimizer;
}

After after(Module& module) {
  return {module.get_params().arg_params, module.optimizer_states(), module.optimizer()->num_update(),
          module.loss_scale()};
}

// By fit(), or by calls, each of which the host queues by itself.
After trained(const Way& way, DType dtype, bool by_fit) {
  NDArrayIter data = batches(60);
  Module module(small_network(), {.context = {gpu(0)}, .compute_dtype = dtype});
  if (by_fit) {
    module.fit(data, {.optimizer = made(way), .arg_params = first_values(), .num_epoch = 3});
    return after(module);
  }
  module.bind(data.provide_data(), data.provide_label());
  module.init_params({.arg_params = first_values()});
  module.init_optimizer({.optimizer = made(way)});
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto batch = data.next(); batch; batch = data.next()) {
      module.forward_backward(*batch);
      module.update();
    }
    data.reset();
  }
  return after(module);
}

TEST_F(CudaStep, OfFitHasTheBitsOfSingleCalls) {
  const Quiet quiet;
  std::vector<Way> ways;
  for (const std::string& name : list_update_rules())
    if (Optimizer::create(name)->repeats_updates()) ways.push_back({name});
  ways.push_back({"sgd", {{"momentum", 0.9}, {"wd", 0.01}}});
  ways.push_back({"sgd", {{"momentum", 0.9}}, true});
  ways.push_back({"nag", {{"momentum", 0.9}, {"clip_gradient", 0.05}}, true});
  ways.push_back({"adam", {{"wd", 0.01}}, true});
  for (const Way& way : ways)
    for (const DType dtype : {DType::none, DType::float16, DType::bfloat16}) {
      SCOPED_TRACE(join(way.optimizer, way.has_schedule ? " with a schedule" : "", ", computed in ", dtype));
      const After expected = trained(way, dtype, false), actual = trained(way, dtype, true);
      expect_same_bits(actual.params, expected.params);
      EXPECT_EQ(actual.states, expected.states);
      EXPECT_EQ(actual.num_update, expected.num_update);
      EXPECT_EQ(actual.scale, expected.scale);
    }
}

// The metrics after each batch of two epochs, or after the last one of each; the last batch of an epoch is padded.
std::vector<std::string> counted(const EvalMetricPtr& metric, bool by_fit, bool every_batch) {
  NDArrayIter data = batches(55);
  Module module(small_network(), {.context = {gpu(0)}});
  std::vector<std::string> seen;
  const auto look = [&](int64_t batch) {
    if (every_batch || batch == 5)
      for (const auto& [name, value] : metric->get()) seen.push_back(join(name, " ", value));
  };
  if (by_fit) {
    module.fit(data, {.eval_metric = metric,
                      .batch_end_callback = {[&](const BatchEndParam& at) { look(at.nbatch); }},
                      .arg_params = first_values(),
                      .num_epoch = 2});
    return seen;
  }
  module.bind(data.provide_data(), data.provide_label());
  module.init_params({.arg_params = first_values()});
  module.init_optimizer();
  for (int epoch = 0; epoch < 2; ++epoch) {
    metric->reset();
    int64_t nbatch = 0;
    for (auto batch = data.next(); batch; batch = data.next()) {
      module.forward_backward(*batch);
      module.update();
      module.update_metric(*metric, batch->label);
      look(nbatch++);
    }
    data.reset();
  }
  return seen;
}

TEST_F(CudaStep, OfFitCountsMetricsAsSingleCallsDo) {
  const Quiet quiet;
  for (const bool every_batch : {true, false})
    for (const std::vector<std::string>& names :
         std::vector<std::vector<std::string>>{{"acc"}, {"ce"}, {"acc", "ce", "loss"}, {"acc", "pcc"}}) {
      SCOPED_TRACE(join(comma_separated(names), every_batch ? " of every batch" : " of epochs"));
      const auto expected = counted(EvalMetric::create(names), false, every_batch);
      ASSERT_EQ(expected.size(), names.size() * (every_batch ? 12 : 2));
      EXPECT_EQ(counted(EvalMetric::create(names), true, every_batch), expected);
    }
}

// It is updated by calls of its own, whatever a captured step does.
TEST_F(CudaStep, OfFitUpdatesTheMetricOfAUserAfterEachBatch) {
  const Quiet quiet;
  class Counted final : public metric::Loss {
   public:
    void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override {
      ++updates;
      Loss::update(labels, preds);
    }
    int updates = 0;
  };
  const auto metric = std::make_shared<Counted>();
  counted(metric, true, false);
  EXPECT_EQ(metric->updates, 12);
}

// In float16, with gradients that overflow in some steps: the device leaves those out.
class Labels final : public DataIter {
 public:
  std::vector<DataDesc> provide_data() const override { return {{"data", {2, 4}}}; }
  std::vector<DataDesc> provide_label() const override { return {{"out_label", {2, 1}}}; }
  void reset() override { step_ = 0; }
  std::optional<DataBatch> next() override {
    if (step_ == 24) return std::nullopt;
    const bool overflows = step_ == 8 || step_ == 9 || step_ == 17;
    DataBatch batch{.data = {random_array({2, 4}, static_cast<uint64_t>(step_))},
                    .label = {full({2, 1}, overflows ? 1e30 : 0.6)}};
    ++step_;
    return batch;
  }

 private:
  int step_ = 0;
};

TEST_F(CudaStep, LeavesOutUpdatesWhoseGradientsOverflow) {
  const Quiet quiet;
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 16}, "fc1");
  net = linear_regression_output(fully_connected(net, {.num_hidden = 1}, "fc2"), {}, "out");
  const NamedArrays first{{"fc1_weight", random_array({16, 4}, 101, -0.1, 0.1)},
                          {"fc1_bias", zeros({16})},
                          {"fc2_weight", random_array({1, 16}, 102, -0.1, 0.1)},
                          {"fc2_bias", zeros({1})}};
  // A bound of the norm, which the host reads, and that has no effect.
  const auto run = [&](bool waits) {
    Labels data;
    OptimizerParams params{{"learning_rate", 0.05}, {"momentum", 0.9}};
    if (waits) params.insert_or_assign("clip_global_norm", 1e30);
    Module module(net, {.label_names = {"out_label"}, .context = {gpu(0)}, .compute_dtype = DType::float16});
    module.fit(data, {.eval_metric = "mse", .optimizer_params = params, .arg_params = first, .num_epoch = 2});
    return after(module);
  };
  const After expected = run(true), actual = run(false);
  EXPECT_LT(expected.num_update, 48);
  expect_same_bits(actual.params, expected.params);
  EXPECT_EQ(actual.num_update, expected.num_update);
  EXPECT_EQ(actual.scale, expected.scale);
}

}  // namespace
}  // namespace symbind::testing
