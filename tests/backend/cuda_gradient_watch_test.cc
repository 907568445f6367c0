// Gradients that backward reports on a GPU, each with the event that the GPU reaches after it: in the first run, whose
// kernels are queued one by one, in the second, which is captured, and in those that launch the captured plan.
#include <thread>

#include <gtest/gtest.h>

#include "symbind/core/transfer.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/gradient_watch.h"
#include "symbind/exec/invoke.h"
#include "symbind/kvstore/dist.h"
#include "symbind/ops/dot.h"

#include "tests/kvstore/thread_transport.h"
#include "tests/support/arrays.h"
#include "tests/support/gpu_test.h"
#include "tests/support/training.h"
#include "tests/support/wide_network.h"

namespace symbind {

using namespace symbind::testing;

namespace {

using CudaGradientWatch = GpuTest;

ExecutorPtr bound(int64_t batch, const SimpleBindOptions& options = {}) {
  ExecutorPtr executor =
      simple_bind(wide_network(), gpu(0), {{"data", {batch, wide}}, {"softmax_label", {batch}}}, options);
  uint64_t seed = 1;
  for (const NDArray& argument : executor->arg_arrays())
    random_array(argument.shape(), seed++, -0.1, 0.1).copyto(argument);
  return executor;
}

// Work that takes the GPU longer than the host needs to queue a step: what is read too early has its old value.
void keep_busy() {
  static const NDArray matrix = full({4096, 4096}, 1e-3, gpu(0)), product = zeros({4096, 4096}, gpu(0));
  for (int i = 0; i < 20; ++i) invoke(dot, {matrix, matrix}, {}, {.out = {product}});
}

struct Report {
  NDArray gradient;
  std::unique_ptr<Download> download;  // begun when it was reported
  DeviceEventPtr complete;
};

// A step on its own data, in one call or in two.
std::vector<Report> run(Executor& executor, int step, bool together = false) {
  std::vector<Report> reports;
  random_array(executor.arg_dict().at("data").shape(), 100 + static_cast<uint64_t>(step))
      .copyto(executor.arg_dict().at("data"));
  keep_busy();
  if (!together) executor.forward(true);
  const GradientWatch watch([&](std::span<const NDArray> gradients, const DeviceEventPtr& complete) {
    ASSERT_NE(complete, nullptr);
    for (const NDArray& gradient : gradients)
      reports.push_back({gradient,
                         start_download(gradient.storage().device(), gradient.data(), gradient.bytes(), *complete),
                         complete});
  });
  if (together)
    executor.forward_backward();
  else
    executor.backward();
  return reports;
}

std::vector<float> arrived(const Report& report) {
  const auto* const values = static_cast<const float*>(report.download->data());
  return {values, values + report.gradient.size()};
}

void expect_final_values(Executor& executor, int step, bool together = false) {
  const std::vector<Report> reports = run(executor, step, together);
  ASSERT_EQ(reports.size(), executor.grad_dict().size()) << "step " << step;
  EXPECT_NE(reports.front().complete, reports.back().complete) << "one event for everything";
  for (size_t i = 0; i < reports.size(); ++i)
    EXPECT_EQ(arrived(reports[i]), reports[i].gradient.to_vector<float>()) << "report " << i << " of step " << step;
  for (const Report& report : reports) EXPECT_TRUE(report.complete->reached());
}

TEST_F(CudaGradientWatch, EventsAreReachedAfterTheFinalValues) {
  const ExecutorPtr executor = bound(64);
  for (int step = 0; step < 6; ++step) expect_final_values(*executor, step);
}

TEST_F(CudaGradientWatch, AlsoWhereForwardAndBackwardAreOneLaunch) {
  const ExecutorPtr executor = bound(64);
  for (int step = 0; step < 3; ++step) executor->forward_backward();
  for (int step = 0; step < 6; ++step) expect_final_values(*executor, step, /*together=*/true);
  for (int step = 6; step < 12; ++step) expect_final_values(*executor, step, /*together=*/step % 2 == 0);
}

TEST_F(CudaGradientWatch, WithoutCaptureToo) {
  const ExecutorPtr executor = bound(64, {.options = {.capture = false}});
  for (int step = 0; step < 3; ++step) expect_final_values(*executor, step);
}

TEST_F(CudaGradientWatch, OfGradientsThatAreAddedTo) {
  const ExecutorPtr executor = bound(64, {.grad_req = "add"});
  for (int step = 0; step < 5; ++step) expect_final_values(*executor, step);
}

// A plan that was captured without a watch is captured again with events, and when its memory has moved.
TEST_F(CudaGradientWatch, AfterOtherRunsAndInMemoryThatHasMoved) {
  const ExecutorPtr executor = bound(16);
  for (int step = 0; step < 4; ++step) {
    executor->forward(true);
    executor->backward();
  }
  for (int step = 0; step < 3; ++step) expect_final_values(*executor, step);
  const ExecutorPtr larger = bound(512, {.shared_exec = executor});
  for (int step = 0; step < 4; ++step) {
    expect_final_values(*larger, step);
    expect_final_values(*executor, step + 10);
  }
}

TEST_F(CudaGradientWatch, GivesTheBitsOfRunsWithoutAWatch) {
  const ExecutorPtr watched = bound(64), alone = bound(64);
  for (int step = 0; step < 4; ++step) {
    run(*watched, step);
    watched->arg_dict().at("data").copyto(alone->arg_dict().at("data"));
    alone->forward(true);
    alone->backward();
    for (const auto& [name, gradient] : alone->grad_dict())
      EXPECT_TRUE(same_bits(watched->grad_dict().at(name), gradient)) << name << " of step " << step;
  }
}

// ---- training -------------------------------------------------------------------------------------------------------

const OptimizerParams momentum{{"learning_rate", 0.05}, {"momentum", 0.9}};

NamedArrays initial_values() {
  NamedArrays values;
  uint64_t seed = 1;
  const ExecutorPtr executor = bound(8);
  for (const auto& [name, array] : executor->arg_dict())
    if (name != "data" && name != "softmax_label") values[name] = random_array(array.shape(), seed++, -0.05, 0.05);
  return values;
}

NDArrayIter wide_batches(int rank) {
  return NDArrayIter(random_array({48, wide}, 70 + static_cast<uint64_t>(rank)), labels_of(48), {.batch_size = 8});
}

struct Job {
  std::string type;
  DistStore::Kind kind;
  DistStore::SumOn sum_on;
  Peers::Options peers = {};
};

// Through fit(), which exchanges gradients during backward, or step by step, without that.
NamedArrays trained(const Job& job, int workers, bool in_fit) {
  const Quiet quiet;
  NamedArrays result;
  const NamedArrays first = initial_values();
  const auto work = [&](Worker& worker) {
    const KVStorePtr store = std::make_shared<DistStore>(job.type, job.kind, job.sum_on, worker.peers);
    NDArrayIter data = wide_batches(worker.rank);
    Module module(wide_network(), {.context = {gpu(0)}});
    if (in_fit) {
      module.fit(data, {.kvstore = store, .optimizer_params = momentum, .arg_params = first, .num_epoch = 2});
    } else {
      module.bind(data.provide_data(), data.provide_label());
      module.init_params({.arg_params = first});
      module.init_optimizer({.kvstore = store, .optimizer_params = momentum});
      for (int epoch = 0; epoch < 2; ++epoch) {
        data.reset();
        while (const auto batch = data.next()) {
          module.forward_backward(*batch);
          module.update();
        }
      }
    }
    if (worker.rank == 0) result = module.get_params().arg_params;
  };
  for (const std::string& thrown : run_job(workers, work, {.peers = job.peers})) EXPECT_EQ(thrown, "");
  return result;
}

TEST_F(CudaGradientWatch, TrainingByAStoreGivesTheBitsOfStepsWithoutOverlap) {
  const std::vector<Job> jobs = {
      {"dist_sync", DistStore::Kind::sync, DistStore::SumOn::cpu},
      {"dist_device_sync", DistStore::Kind::sync, DistStore::SumOn::device},
      {"horovod", DistStore::Kind::allreduce, DistStore::SumOn::device},
      {"dist_sync",
       DistStore::Kind::sync,
       DistStore::SumOn::cpu,
       {.timeout = std::chrono::seconds(20), .elastic = true}},
  };
  for (const Job& job : jobs)
    for (const int workers : {1, 2}) {
      SCOPED_TRACE(join(job.type, job.peers.elastic ? ", elastic, " : ", ", workers, " workers"));
      expect_same_bits(trained(job, workers, true), trained(job, workers, false));
    }
}

}  // namespace
}  // namespace symbind
