// Synchronized batch normalisation over several contexts and workers. The reference is BatchNorm on one context that
// has the whole batch.
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/core/parallel.h"
#include "symbind/core/sum_group.h"
#include "symbind/kvstore/worker_sum.h"
#include "symbind/ops/custom.h"
#include "symbind/train/monitor.h"

#include "tests/kvstore/thread_transport.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

constexpr int64_t samples = 12, channels = 4;
constexpr double eps = 1e-3, momentum = 0.8;
constexpr Tolerance close{1e-5, 1e-5, 1e-5};

enum class Kind { batch_norm, sync_batch_norm };

Symbol normalized(Kind kind, const Symbol& data, const std::string& name, bool fix_gamma = false) {
  if (kind == Kind::batch_norm)
    return batch_norm(data, {.eps = eps, .momentum = momentum, .fix_gamma = fix_gamma}, name);
  return sync_batch_norm(data, {.eps = eps, .momentum = momentum, .fix_gamma = fix_gamma, .key = "key_of_" + name},
                         name);
}

// Two layers with one that leads around them.
Symbol residual_network(Kind kind, bool fix_gamma = false) {
  const Symbol data = Symbol::variable("data");
  const Symbol first = convolution(data, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = channels}, "conv1");
  Symbol net = activation(normalized(kind, first, "bn1", fix_gamma), {.act_type = "tanh"}, "tanh1");
  net = convolution(net, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = channels}, "conv2");
  net = normalized(kind, net, "bn2", fix_gamma) + first;
  net = fully_connected(activation(net, {.act_type = "relu"}), {.num_hidden = 3}, "fc");
  return softmax_output(net, {}, "softmax");
}

NDArray images() { return random_array({samples, 2, 5, 5}, 3); }

NamedArrays first_arguments() {
  return {{"conv1_weight", random_array({channels, 2, 3, 3}, 1)},
          {"conv1_bias", random_array({channels}, 2)},
          {"bn1_gamma", random_array({channels}, 3, 0.5, 1.5)},
          {"bn1_beta", random_array({channels}, 4)},
          {"conv2_weight", random_array({channels, channels, 3, 3}, 5)},
          {"conv2_bias", random_array({channels}, 6)},
          {"bn2_gamma", random_array({channels}, 7, 0.5, 1.5)},
          {"bn2_beta", random_array({channels}, 8)},
          {"fc_weight", random_array({3, channels * 25}, 9)},
          {"fc_bias", random_array({3}, 10)}};
}

std::vector<Context> contexts(size_t count) {
  std::vector<Context> all;
  for (size_t i = 0; i < count; ++i) all.push_back(cpu(static_cast<int>(i)));
  return all;
}

struct Bound {
  ModuleOptions options = {};
  NDArray data = images();
  NamedArrays arguments = first_arguments();
};

std::unique_ptr<Module> bound(const Symbol& net, const Bound& with) {
  auto module = std::make_unique<Module>(net, with.options);
  const int64_t rows = with.data.shape()[0];
  module->bind({{"data", with.data.shape()}}, {{"softmax_label", {rows}}}, {.inputs_need_grad = true});
  module->init_params(
      {.initializer = std::make_shared<init::Zero>(), .arg_params = with.arguments, .allow_missing = true});
  return module;
}

DataBatch batch_of(const NDArray& data, const NDArray& labels = {}) {
  DataBatch batch;
  batch.data = {data};
  if (labels) batch.label = {labels};
  return batch;
}

// What a step computes, over all contexts: gradients are added up.
struct Step {
  NamedArrays arrays;
  NamedArrays statistics;
};

Step step(Module& module, const DataBatch& batch) {
  module.forward_backward(batch);
  Step made{
      {{"output", module.get_outputs()[0].as_copy_in(cpu())}, {"data", module.get_input_grads()[0].as_copy_in(cpu())}},
      {}};
  const DataParallelExecutorGroup& group = *module.exec_group();
  for (size_t i = 0; i < group.param_names().size(); ++i) {
    NDArray sum = group.grad_arrays()[i][0].as_copy_in(cpu());
    for (size_t k = 1; k < group.contexts().size(); ++k) sum += group.grad_arrays()[i][k].as_in_context(cpu());
    made.arrays[group.param_names()[i]] = sum;
  }
  for (size_t i = 0; i < group.aux_names().size(); ++i) {
    made.statistics[group.aux_names()[i]] = group.aux_arrays()[i][0].as_copy_in(cpu());
    for (size_t k = 1; k < group.contexts().size(); ++k)
      EXPECT_TRUE(
          same_bits(group.aux_arrays()[i][k].as_in_context(cpu()), group.aux_arrays()[i][0].as_in_context(cpu())))
          << group.aux_names()[i] << " of context " << k;
  }
  return made;
}

void expect_close(const Step& actual, const Step& expected, Tolerance tolerance = close) {
  expect_equal(actual.arrays, expected.arrays, tolerance);
  expect_equal(actual.statistics, expected.statistics, tolerance);
}

const DataBatch& whole_batch() {
  static const DataBatch batch = batch_of(images(), labels_of(samples));
  return batch;
}

Step on_one_context(bool fix_gamma = false) {
  return step(*bound(residual_network(Kind::batch_norm, fix_gamma), {}), whole_batch());
}

struct Case {
  size_t contexts;
  std::vector<double> work_load_list = {};
};
const std::vector<Case> cases = {{1}, {2}, {2, {1, 5}}, {3, {3, 1, 2}}, {4}, {4, {1, 5, 4, 2}}};

// ---- Several contexts -----------------------------------------------------------------------------------------------

TEST(SyncBatchNorm, ComputesOnSeveralContextsWhatBatchNormComputesOnOne) {
  for (const bool fix_gamma : {false, true}) {
    const Step expected = on_one_context(fix_gamma);
    for (const Case& each : cases) {
      SCOPED_TRACE(join(each.contexts, " contexts, fix_gamma ", fix_gamma));
      const auto module = bound(residual_network(Kind::sync_batch_norm, fix_gamma),
                                {{.context = contexts(each.contexts), .work_load_list = each.work_load_list}});
      expect_close(step(*module, whole_batch()), expected);
    }
  }
}

TEST(SyncBatchNorm, TrainsOnSeveralContextsAsBatchNormOnOne) {
  const auto trained = [](Kind kind, size_t count) {
    NDArrayIter data(random_array({4 * samples, 2, 5, 5}, 3), labels_of(4 * samples), {.batch_size = samples});
    Module module(residual_network(kind), {.context = contexts(count)});
    const Quiet quiet;
    module.fit(data, {.optimizer_params = {{"learning_rate", 0.05}, {"momentum", 0.9}},
                      .arg_params = first_arguments(),
                      .aux_params = {{{"bn1_moving_mean", zeros({channels})},
                                      {"bn1_moving_var", ones({channels})},
                                      {"bn2_moving_mean", zeros({channels})},
                                      {"bn2_moving_var", ones({channels})}}},
                      .num_epoch = 3});
    return module.get_params();
  };
  const auto expected = trained(Kind::batch_norm, 1), actual = trained(Kind::sync_batch_norm, 3);
  expect_equal(actual.arg_params, expected.arg_params, {1e-4, 1e-5, 1e-4});
  expect_equal(actual.aux_params, expected.aux_params, {1e-4, 1e-5, 1e-4});
}

TEST(SyncBatchNorm, HasAnAccurateVarianceWhereTheMeanIsLarge) {
  const Symbol net = sync_batch_norm(Symbol::variable("data"), {.eps = 0, .momentum = 0, .key = "k"}, "bn");
  const int64_t count = 9 * 50;
  for (const double mean : {0.0, 1e2, -1e4, 1e5}) {  // in deviations of about 0.6
    NDArray data = random_array({9, 2, 50}, 7, -1, 1);
    data += mean * 0.6;
    Module module(net, {.label_names = {}, .context = contexts(3), .work_load_list = {4, 3, 2}});
    module.bind({{"data", data.shape()}});
    module.init_params({.initializer = std::make_shared<init::One>()});
    module.forward(batch_of(data), true);
    const auto values = data.to_vector<double>();
    std::vector<double> means(2, 0), variances(2, 0);
    const auto each = [&](auto&& visit) {
      for (size_t i = 0; i < values.size(); ++i) visit(i / 50 % 2, values[i]);
    };
    each([&](size_t c, double x) { means[c] += x / static_cast<double>(count); });
    each([&](size_t c, double x) { variances[c] += (x - means[c]) * (x - means[c]) / static_cast<double>(count); });
    const NamedArrays& aux = module.exec_group()->execs()[0]->aux_dict();
    EXPECT_TRUE(all_close(aux.at("bn_moving_mean").to_vector<double>(), means, {2e-7, 1e-7}));
    EXPECT_TRUE(all_close(aux.at("bn_moving_var").to_vector<double>(), variances, {1e-5})) << "mean " << mean;
  }
}

TEST(SyncBatchNorm, HasStatisticsOfTheWholeBatchInEveryType) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float64}) {
    const auto net = [&](Kind kind) {
      const Symbol data = cast(Symbol::variable("data"), {.dtype = dtype});
      return fully_connected(cast(normalized(kind, data, "bn"), {.dtype = DType::float32}), {.num_hidden = 3}, "fc");
    };
    const NamedArrays arguments = {{"bn_gamma", random_array({2}, 3, 0.5, 1.5)},
                                   {"bn_beta", random_array({2}, 4)},
                                   {"fc_weight", random_array({3, 50}, 9)},
                                   {"fc_bias", random_array({3}, 10)}};
    const auto run = [&](Kind kind, size_t count) {
      const auto module =
          bound(softmax_output(net(kind), {}, "softmax"), {{.context = contexts(count)}, images(), arguments});
      Step made = step(*module, whole_batch());
      for (auto* arrays : {&made.arrays, &made.statistics})
        for (auto& [name, array] : *arrays) array = array.astype(DType::float32);
      return made;
    };
    const double half = dtype == DType::float16 ? 2e-3 : dtype == DType::bfloat16 ? 2e-2 : 1e-5;
    expect_close(run(Kind::sync_batch_norm, 3), run(Kind::batch_norm, 1), {half, half, half});
  }
}

TEST(SyncBatchNorm, NormalizesAloneWhereAnExecutorIsBoundAlone) {
  const Symbol data = Symbol::variable("data");
  const auto run = [](const Symbol& net) {
    auto executor = simple_bind(net, cpu(), {{"data", {4, 2, 3}}});
    executor->arg_dict().at("bn_gamma").fill(1);
    return executor->forward(true, {{"data", random_array({4, 2, 3}, 1)}})[0];
  };
  EXPECT_TRUE(same_bits(run(sync_batch_norm(data, {.eps = eps, .ndev = 2, .key = "k"}, "bn")),
                        run(batch_norm(data, {.eps = eps}, "bn"))));
}

TEST(SyncBatchNorm, WaitsForNobodyInInference) {
  const auto module = bound(residual_network(Kind::sync_batch_norm), {{.context = contexts(2)}});
  const auto reference = bound(residual_network(Kind::batch_norm), {});
  module->forward(whole_batch(), false);
  reference->forward(whole_batch(), false);
  EXPECT_TRUE(all_close(module->get_outputs()[0].as_in_context(cpu()), reference->get_outputs()[0], close));
  for (const ExecutorPtr& executor : module->exec_group()->execs()) executor->forward(false);
}

TEST(SyncBatchNorm, IsNotRecomputed) {
  const Step expected = on_one_context();
  for (const size_t budget : {0, 1}) {
    const Quiet quiet;  // about the budget, which is too small
    auto symbol = residual_network(Kind::sync_batch_norm);
    if (budget == 0) {
      const AttrScope mirrored({{"force_mirroring", "True"}});
      symbol = residual_network(Kind::sync_batch_norm);
    }
    const auto module = bound(
        symbol, {{.context = contexts(3), .work_load_list = {1, 3, 2}, .compile_options = {.memory_budget = budget}}});
    expect_close(step(*module, whole_batch()), expected);
  }
}

TEST(SyncBatchNorm, SumsUnderAMonitor) {
  const auto module = bound(residual_network(Kind::sync_batch_norm), {{.context = contexts(3)}});
  Monitor monitor(1);
  module->install_monitor(monitor);
  monitor.tic();
  expect_close(step(*module, whole_batch()), on_one_context());
  EXPECT_GT(monitor.toc().size(), 3u);
}

TEST(SyncBatchNorm, SumsInNetworksThatAreOnSeveralContextsThemselves) {
  const auto net = [](Kind kind) {
    const Symbol data = Symbol::variable("data");
    std::vector<Symbol> branches;
    for (const char* const group : {"left", "right"}) {
      const AttrScope scope({{"ctx_group", group}});
      Symbol branch = convolution(data, {.kernel = {3, 3}, .num_filter = 8}, join(group, "_conv"));
      for (int i = 0; i < 3; ++i)
        branch =
            activation(normalized(kind, branch, join(group, "_bn", i)), {.act_type = "tanh"}, join(group, "_tanh", i));
      branches.push_back(fully_connected(branch, {.num_hidden = 3}, join(group, "_fc")));
    }
    return softmax_output(branches[0] + branches[1], {}, "softmax");
  };
  NamedArrays arguments;
  for (const std::string group : {"left", "right"}) {
    arguments[group + "_conv_weight"] = random_array({8, 2, 3, 3}, 1);
    arguments[group + "_conv_bias"] = random_array({8}, 2);
    arguments[group + "_fc_weight"] = random_array({3, 72}, 3);
    arguments[group + "_fc_bias"] = random_array({3}, 4);
    for (int i = 0; i < 3; ++i) {
      arguments[join(group, "_bn", i, "_gamma")] = random_array({8}, 5, 0.5, 1.5);
      arguments[join(group, "_bn", i, "_beta")] = random_array({8}, 6);
    }
  }
  const Step expected = step(*bound(net(Kind::batch_norm), {{}, images(), arguments}), whole_batch());
  const auto module =
      bound(net(Kind::sync_batch_norm),
            {{.context = contexts(2),
              .group2ctxs = {{{"left", cpu(2)}, {"right", cpu(3)}}, {{"left", cpu(4)}, {"right", cpu(5)}}}},
             images(),
             arguments});
  for (int again = 0; again < 3; ++again) {
    module->set_params(arguments, {}, true);
    Step actual = step(*module, whole_batch());
    expect_equal(actual.arrays, expected.arrays, close);
  }
}

// ---- A context that fails -------------------------------------------------------------------------------------------

// The identity, which fails where a number is above 100.
class FailsForLargeNumbers : public CustomOp {
 public:
  void forward(bool, const std::vector<OpReq>& req, const std::vector<NDArray>& in, const std::vector<NDArray>& out,
               const std::vector<NDArray>&) override {
    for (const float value : in[0].to_vector<float>()) require(value <= 100, "a number is above 100");
    assign(out[0], req[0], in[0]);
  }
  void backward(const std::vector<OpReq>& req, const std::vector<NDArray>& out_grad, const std::vector<NDArray>&,
                const std::vector<NDArray>&, const std::vector<NDArray>& in_grad,
                const std::vector<NDArray>&) override {
    assign(in_grad[0], req[0], out_grad[0]);
  }
};
class FailsProp : public CustomOpProp {
 public:
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return std::make_shared<FailsForLargeNumbers>();
  }
};

TEST(SyncBatchNorm, ThrowsWhatAContextThrowsInsteadOfWaitingForIt) {
  register_custom_op("fails_for_large_numbers", [](const Attributes&) { return std::make_shared<FailsProp>(); });
  const Symbol net = normalized(
      Kind::sync_batch_norm, custom(Symbol::variable("data"), {.op_type = "fails_for_large_numbers"}, "check"), "bn");
  Module module(net, {.label_names = {}, .context = contexts(3)});
  module.bind({{"data", {6, 2}}});
  module.init_params({.initializer = std::make_shared<init::One>()});
  for (int64_t bad = 0; bad < 6; bad += 2) {  // on each context in turn
    NDArray data = random_array({6, 2}, 1);
    data.slice(bad, bad + 1).fill(1000);
    EXPECT_TRUE(fails_with([&] { module.forward(batch_of(data), true); }, "a number is above 100"));
    module.forward(batch_of(random_array({6, 2}, 1)), true);
  }
}

// ---- Several workers ------------------------------------------------------------------------------------------------

// The rows of a worker's part.
NDArray part(const NDArray& array, int worker, int workers) {
  const int64_t rows = array.shape()[0] / workers;
  return array.slice(worker * rows, (worker + 1) * rows);
}

constexpr int steps = 3;
DataBatch batch_at(int number, int worker, int workers) {
  const NDArray data = random_array({samples, 2, 5, 5}, 30 + static_cast<uint64_t>(number));
  return batch_of(part(data, worker, workers), part(labels_of(samples), worker, workers));
}

struct Trained {
  std::vector<NDArray> outputs, input_grads;  // of each step
  NamedArrays arguments, statistics;
};

Trained trained(Module& module, const KVStorePtr& store, const std::function<DataBatch(int number)>& batch) {
  const ThreadScope one({.threads = 1});
  module.init_optimizer(
      {.kvstore = store,
       .optimizer_params = {{"learning_rate", 0.05}, {"momentum", 0.9}, {"rescale_grad", 1.0 / samples}}});
  Trained result;
  for (int number = 0; number < steps; ++number) {
    module.forward_backward(batch(number));
    result.outputs.push_back(module.get_outputs()[0].as_copy_in(cpu()));
    result.input_grads.push_back(module.get_input_grads()[0].as_copy_in(cpu()));
    module.update();
  }
  // Those of the first context: the mean of three equal numbers may be another one.
  const auto& executor = *module.exec_group()->execs()[0];
  for (const std::string& name : module.exec_group()->param_names())
    result.arguments[name] = executor.arg_dict().at(name).as_copy_in(cpu());
  for (const auto& [name, array] : executor.aux_dict()) result.statistics[name] = array.as_copy_in(cpu());
  return result;
}

TEST(SyncBatchNormOfWorkers, HasTheBitsOfAsManyContextsOfOneProcess) {
  for (const std::string type : {"dist_sync", "horovod"})
    for (const int workers : {2, 3, 4}) {
      SCOPED_TRACE(join(type, " with ", workers, " workers"));
      const auto module =
          bound(residual_network(Kind::sync_batch_norm), {{.context = contexts(static_cast<size_t>(workers))}});
      const Trained expected =
          trained(*module, KVStore::create("local"), [](int number) { return batch_at(number, 0, 1); });
      std::vector<Trained> got(static_cast<size_t>(workers));
      const auto thrown = run_job(workers, [&](Worker& worker) {
        const InSumScope scope({.over_workers = std::make_shared<const WorkerSum>(make_worker_sum(worker.peers))});
        const auto own = bound(residual_network(Kind::sync_batch_norm), {{}, part(images(), worker.rank, workers)});
        got[static_cast<size_t>(worker.rank)] =
            trained(*own, worker.store(type), [&](int number) { return batch_at(number, worker.rank, workers); });
      });
      ASSERT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(workers)));
      for (int worker = 0; worker < workers; ++worker) {
        const Trained& each = got[static_cast<size_t>(worker)];
        for (size_t number = 0; number < steps; ++number) {
          EXPECT_TRUE(same_bits(each.outputs[number], part(expected.outputs[number], worker, workers)));
          EXPECT_TRUE(same_bits(each.input_grads[number], part(expected.input_grads[number], worker, workers)));
        }
        expect_same_bits(each.arguments, expected.arguments);
        expect_same_bits(each.statistics, expected.statistics);
      }
    }
}

TEST(SyncBatchNormOfWorkers, AddsUpOverTheContextsOfEach) {
  const Step expected = on_one_context();
  std::vector<Step> got(2);
  const auto thrown = run_job(2, [&](Worker& worker) {
    const InSumScope scope({.over_workers = std::make_shared<const WorkerSum>(make_worker_sum(worker.peers))});
    // Five samples on two contexts, and seven on three.
    const auto rows = [&](const NDArray& all) { return worker.rank == 0 ? all.slice(0, 5) : all.slice(5, samples); };
    const auto own = bound(residual_network(Kind::sync_batch_norm),
                           {{.context = contexts(worker.rank == 0 ? 2 : 3)}, rows(images())});
    got[static_cast<size_t>(worker.rank)] = step(*own, batch_of(rows(images()), rows(labels_of(samples))));
  });
  ASSERT_EQ(thrown, std::vector<std::string>(2));
  for (const auto& [name, array] : expected.arrays) {
    const NDArray &first = got[0].arrays.at(name), &second = got[1].arrays.at(name);
    const bool by_sample = name == "data" || name == "output";
    EXPECT_TRUE(all_close(by_sample ? concatenate(std::vector{first, second}) : first + second, array, close)) << name;
  }
  for (const Step& each : got) expect_equal(each.statistics, expected.statistics, close);
  expect_same_bits(got[0].statistics, got[1].statistics);
}

TEST(SyncBatchNormOfWorkers, NamesTheWorkerThatIsMissed) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const InSumScope scope({.over_workers = std::make_shared<const WorkerSum>(make_worker_sum(worker.peers))});
    const auto own =
        bound(residual_network(Kind::sync_batch_norm), {{.context = contexts(2)}, part(images(), worker.rank, 2)});
    own->forward(batch_at(0, worker.rank, 2), true);
    if (worker.rank == 0) own->forward(batch_at(0, worker.rank, 2), true);
  });
  for (const char* const text :
       {"worker 1 on host thread1 has ended", "[_contrib_SyncBatchNorm bn1]", "key_of_bn1", "step 2"})
    EXPECT_NE(thrown[0].find(text), std::string::npos) << thrown[0];
}

}  // namespace
}  // namespace symbind::testing
