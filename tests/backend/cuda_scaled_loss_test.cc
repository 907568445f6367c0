// Training in float16 on a GPU, which decides by itself whether a step is taken: updates are left out to the bit, and
// weights, states, counts and scales are those of a host that waits for the check of every step.
#include <limits>

#include <gtest/gtest.h>

#include "symbind/symbind.h"

#include "tests/kvstore/thread_transport.h"
#include "tests/support/arrays.h"
#include "tests/support/gpu_test.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

// ---- Updates --------------------------------------------------------------------------------------------------------

struct Rule {
  std::string name;
  OptimizerParams params = {};
  DType dtype = DType::float32;
};

// All optimizers that can leave out updates, with their other forms.
std::vector<Rule> conditional_rules() {
  std::vector<Rule> rules;
  for (const std::string& name : list_update_rules())
    if (Optimizer::create(name)->is_conditional()) rules.push_back({name});
  for (const char* name : {"sgd", "nag", "dcasgd"}) rules.push_back({name, {{"momentum", 0.9}}});
  for (const char* name : {"sgd", "nag"})
    for (const double momentum : {0.0, 0.9})
      rules.push_back({name, {{"momentum", momentum}, {"multi_precision", true}}, DType::float16});
  rules.push_back({"adam", {}, DType::float16});
  rules.push_back({"rmsprop", {{"centered", true}}});
  rules.push_back({"signum", {{"momentum", 0.0}}});
  for (Rule& rule : rules) rule.params.insert({{"wd", 0.01}, {"rescale_grad", 0.5}});
  return rules;
}

void add_arrays(const StateTree& state, std::vector<NDArray>& arrays) {
  if (state.array) arrays.push_back(state.array.as_copy_in(cpu()));
  for (const StateTree& part : state.tuple) add_arrays(part, arrays);
}

class Trained {
 public:
  explicit Trained(const Rule& rule) : updater_(Optimizer::create(rule.name, rule.params)) {
    for (const Shape& shape : std::vector<Shape>{{300, 41}, {7}, {1}, {5000}})
      weights_.push_back(random_array(shape, weights_.size(), -1, 1, rule.dtype, gpu(0)));
  }

  void step(uint64_t seed, bool finite = true) {
    std::vector<Updater::Item> items;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const NDArray& weight = weights_[i];
      NDArray grad = random_array(weight.shape(), 100 * seed + i, -1, 1, weight.dtype(), gpu(0));
      if (!finite) grad.fill(i % 2 ? std::numeric_limits<double>::infinity() : 1e4);
      items.push_back({static_cast<int64_t>(i), grad, weight});
    }
    updater_(items);
  }
  void step_if(bool made, uint64_t seed, bool finite) {
    const NDArray condition = full({1}, made ? 1 : 0, gpu(0));
    ResumeState before = updater_.optimizer()->resume_state();
    {
      const UpdateCondition scope(static_cast<const float*>(condition.data()));
      step(seed, finite);
    }
    updater_.optimizer()->count_if([made] { return made; }, std::move(before));
  }

  // Weights and states.
  std::vector<NDArray> arrays() const {
    std::vector<NDArray> all;
    for (const NDArray& weight : weights_) all.push_back(weight.as_copy_in(cpu()));
    for (const auto& [key, state] : updater_.states()) add_arrays(state, all);
    return all;
  }
  ResumeState counts() const { return updater_.optimizer()->resume_state(); }

 private:
  Updater updater_;
  std::vector<NDArray> weights_;
};

void expect_same(const std::vector<NDArray>& actual, const std::vector<NDArray>& expected, const char* when) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(same_bits(actual[i], expected[i])) << "array " << i << when;
}

using CudaScaledLoss = GpuTest;

TEST_F(CudaScaledLoss, UpdatesAreLeftOutToTheBit) {
  const Quiet quiet;  // float16 without a copy is warned of
  for (const Rule& rule : conditional_rules()) {
    SCOPED_TRACE(join(rule.name, " of ", rule.dtype, " with ", rule.params.size(), " arguments"));
    Trained plain(rule), conditional(rule);
    plain.step(1);
    conditional.step(1);
    const std::vector<NDArray> before = conditional.arrays();
    conditional.step_if(false, 2, /*finite=*/false);
    expect_same(conditional.arrays(), before, " after the step that is left out");
    plain.step(3);
    conditional.step_if(true, 3, /*finite=*/true);
    expect_same(conditional.arrays(), plain.arrays(), " after the step that is made");
    EXPECT_EQ(conditional.counts().num_update, 2);
    EXPECT_EQ(conditional.counts().index_update_count, plain.counts().index_update_count);
  }
}

TEST_F(CudaScaledLoss, AStepOnTheHostCannotBeLeftOut) {
  const NDArray condition = zeros({1}, gpu(0)), indices = zeros({5}, gpu(0));
  const UpdateCondition scope(static_cast<const float*>(condition.data()));
  const UnravelIndex many_axes{.shape = Tuple(12, 2)};  // more than the kernel of the GPU takes
  EXPECT_TRUE(fails_with([&] { invoke(unravel_index, {indices}, many_axes); }, "runs on the host"));
}

// ---- Modules --------------------------------------------------------------------------------------------------------

// A label of 1e30 makes gradients overflow; so do all others while the scale is 65536.
Symbol regression() {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 16}, "fc1");
  net = activation(net, {.act_type = act_type::relu});
  return linear_regression_output(fully_connected(net, {.num_hidden = 1}, "fc2"), {}, "out");
}

constexpr int steps = 16;
bool overflows(int step) { return step == 8 || step == 9 || step == 13 || step == 15; }
DataBatch batch_at(int step) {
  return {.data = {random_array({2, 4}, static_cast<uint64_t>(step))},
          .label = {full({2, 1}, overflows(step) ? 1e30 : 0.6)}};
}

const NamedArrays values{{"fc1_weight", random_array({16, 4}, 101, -0.1, 0.1)},
                         {"fc1_bias", zeros({16})},
                         {"fc2_weight", random_array({1, 16}, 102, -0.1, 0.1)},
                         {"fc2_bias", zeros({1})}};

struct After {
  double scale;
  int64_t num_update;
  double learning_rate;
  std::vector<float> weight;
  std::string states;
  friend bool operator==(const After&, const After&) = default;
};

Module in_float16(Context context = gpu(0)) {
  return Module(regression(), {.label_names = {"out_label"}, .context = {context}, .compute_dtype = DType::float16});
}

After now(Module& module) {
  return {module.loss_scale(), module.optimizer()->num_update(), module.optimizer()->learning_rate(),
          module.get_params().arg_params.at("fc1_weight").to_vector<float>(), module.optimizer_states()};
}

// `look(step)`: is the module looked at after this step? `waits`: by the norm of gradients, which the host reads, and
// whose bound has no effect.
std::vector<After> trained(const std::string& optimizer, bool waits, const std::function<bool(int)>& look) {
  const LRSchedulerPtr schedule = std::make_shared<FactorScheduler>(FactorSchedule{.step = 2, .factor = 0.5});
  OptimizerParams params{{"learning_rate", 0.05}, {"lr_scheduler", schedule}};
  if (optimizer == "sgd") params.insert_or_assign("momentum", 0.9);
  if (waits) params.insert_or_assign("clip_global_norm", 1e30);
  Module module = in_float16();
  module.bind({{"data", {2, 4}}}, {{"out_label", {2, 1}}});
  module.init_params({.arg_params = values});
  const OptimizerPtr made = Optimizer::create(optimizer, params);
  made->rescale_grad = 0.5;
  module.init_optimizer({.optimizer = made});
  EXPECT_EQ(made->is_conditional(), !waits);
  std::vector<After> result;
  for (int i = 0; i < steps; ++i) {
    module.forward_backward(batch_at(i));
    module.update();
    if (look(i)) result.push_back(now(module));
  }
  return result;
}

TEST_F(CudaScaledLoss, StepsAreThoseOfAHostThatWaits) {
  const Quiet quiet;
  for (const std::string optimizer : {"sgd", "adam", "rmsprop"}) {
    SCOPED_TRACE(optimizer);
    const auto every = [](int) { return true; };
    const std::vector<After> expected = trained(optimizer, /*waits=*/true, every),
                             actual = trained(optimizer, /*waits=*/false, every);
    EXPECT_GT(expected.back().num_update, 2);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(actual[i].scale, expected[i].scale) << i;
      EXPECT_EQ(actual[i].num_update, expected[i].num_update) << i;
      EXPECT_EQ(actual[i].learning_rate, expected[i].learning_rate) << i;
      EXPECT_EQ(actual[i].weight, expected[i].weight) << i;
      EXPECT_EQ(actual[i].states, expected[i].states) << i;
      if (i > 0 && overflows(static_cast<int>(i))) {
        EXPECT_EQ(expected[i].scale, expected[i - 1].scale / 2) << i;
        EXPECT_EQ(expected[i].weight, expected[i - 1].weight) << i;
      }
    }
    // Looked at only after the last step, which overflows, and after the one after an overflow.
    for (const int last : {10, steps - 1}) {
      const std::vector<After> once = trained(optimizer, /*waits=*/false, [=](int step) { return step == last; });
      ASSERT_EQ(once.size(), 1u);
      EXPECT_TRUE(once[0] == expected[static_cast<size_t>(last)]) << "after step " << last;
    }
  }
}

TEST_F(CudaScaledLoss, ScalesAreThoseOfTheCpu) {
  std::vector<std::vector<double>> scales;
  for (const Context context : {cpu(), gpu(0)}) {
    Module module = in_float16(context);
    module.bind({{"data", {2, 4}}}, {{"out_label", {2, 1}}});
    module.init_params({.arg_params = values});
    module.init_optimizer({.optimizer_params = {{"learning_rate", 0.01}}});
    std::vector<double>& own = scales.emplace_back();
    for (int i = 0; i < steps; ++i) {
      module.forward_backward(batch_at(i));
      module.update();
      own.push_back(module.loss_scale());
    }
    EXPECT_LT(own.back(), LossScale::first / 8);
  }
  EXPECT_EQ(scales[0], scales[1]);
}

// ---- Workers that share the GPU -------------------------------------------------------------------------------------

// Those of worker 0 never overflow by themselves.
class Batches final : public DataIter {
 public:
  explicit Batches(int rank) : rank_(rank) {}
  std::vector<DataDesc> provide_data() const override { return {{"data", {2, 4}}}; }
  std::vector<DataDesc> provide_label() const override { return {{"out_label", {2, 1}}}; }
  void reset() override { step_ = 0; }
  std::optional<DataBatch> next() override {
    if (step_ == steps) return std::nullopt;
    DataBatch batch = batch_at(step_++);
    if (rank_ == 0) batch.label = {full({2, 1}, 0.1)};
    return batch;
  }

 private:
  int rank_, step_ = 0;
};

std::vector<After> trained_by(const Worker& worker, bool waits) {
  OptimizerParams params{{"learning_rate", 0.05}, {"momentum", 0.9}};
  if (waits) params.insert_or_assign("clip_global_norm", 1e30);
  Module module = in_float16();
  Batches data(worker.rank);
  std::vector<After> seen;
  module.fit(data, {.eval_metric = "mse",
                    .batch_end_callback = {[&](const BatchEndParam&) { seen.push_back(now(module)); }},
                    .kvstore = worker.store("horovod"),
                    .optimizer_params = params,
                    .arg_params = values,
                    .num_epoch = 1});
  return seen;
}

TEST_F(CudaScaledLoss, WorkersThatSumGradientsDecideAlike) {
  const Quiet quiet;
  for (const int workers : {1, 2}) {
    std::vector<std::vector<After>> all(static_cast<size_t>(workers));
    const auto thrown = run_job(workers, [&](Worker& worker) {
      const std::vector<After> expected = trained_by(worker, /*waits=*/true);
      std::vector<After>& own = all[static_cast<size_t>(worker.rank)] = trained_by(worker, /*waits=*/false);
      EXPECT_TRUE(own == expected) << "worker " << worker.rank << " of " << workers;
    });
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(workers)));
    EXPECT_TRUE(all.front() == all.back());
    if (workers == 2) {
      EXPECT_EQ(all[0][8].scale, all[0][7].scale / 2) << "worker 1 overflows";
    }
  }
}

// Buckets share the scale; each has an executor of its own.
TEST_F(CudaScaledLoss, BucketsContinueWithTheScaleOfTheOneBefore) {
  const Quiet quiet;
  const auto run = [](bool waits) {
    OptimizerParams params{{"learning_rate", 0.05}, {"momentum", 0.9}};
    if (waits) params.insert_or_assign("clip_global_norm", 1e30);
    BucketingModule module(
        [](const BucketKey&) {
          return BucketNetwork{regression(), {"data"}, {"out_label"}};
        },
        {.default_bucket_key = 0, .context = {gpu(0)}, .compute_dtype = DType::float16});
    module.bind({{"data", {2, 4}}}, {{"out_label", {2, 1}}});
    module.init_params({.arg_params = values});
    module.init_optimizer({.optimizer_params = params});
    for (int i = 0; i < steps; ++i) {
      DataBatch batch = batch_at(i);
      batch.bucket_key = i % 2;
      batch.provide_data = {{"data", {2, 4}}};
      batch.provide_label = {{"out_label", {2, 1}}};
      module.forward_backward(batch);
      module.update();
    }
    return module.get_params().arg_params;
  };
  expect_same_bits(run(false), run(true));
}

}  // namespace
}  // namespace symbind::testing
