// Sums and copies between GPUs by NCCL (kvstore/nccl), beside the sums of the device store. Two processes use one GPU
// as if they were on two hosts (NCCL_HOSTID): NCCL refuses that on one host.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "symbind/core/error.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/kvstore/dist.h"
#include "symbind/kvstore/gpu_group.h"
#include "symbind/kvstore/kvstore.h"
#include "symbind/kvstore/worker_gpus.h"

#include "tests/kvstore/thread_transport.h"
#include "tests/support/arrays.h"
#include "tests/support/gpu_test.h"
#include "tests/support/training.h"

namespace symbind {

using namespace symbind::testing;

namespace {

class CudaNcclTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (const std::string problem = nccl_problem(); !problem.empty()) GTEST_SKIP() << problem;
  }
};

std::vector<Context> all_gpus() {
  std::vector<Context> gpus;
  for (int id = 0; id < num_gpus(); ++id)
    if (gpu_number(gpu(id)) == id) gpus.push_back(gpu(id));  // NCCL refuses one that is listed twice
  return gpus;
}

// On a machine with one GPU NCCL only copies, but every call is made.
TEST_F(CudaNcclTest, SumsAndCopiesArraysOfEveryType) {
  const std::vector<Context> gpus = all_gpus();
  const auto group = open_gpu_group(gpus);
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8, DType::int8,
                            DType::int32, DType::int64}) {
    ASSERT_TRUE(nccl_adds(dtype)) << dtype;
    const Shape shape{37, 11};
    GpuGroup::Sum sum{{}, zeros(shape, gpus.back(), dtype)};
    GpuGroup::Copy copy{sum.to, {}};
    NDArray expected = zeros(shape, cpu(), dtype);
    for (size_t i = 0; i < gpus.size(); ++i) {
      sum.from.push_back(random_array(shape, i, 0, 4, dtype, gpus[i]));  // exact in every type
      expected += sum.from.back().as_in_context(cpu());
      copy.to.push_back(zeros(shape, gpus[i], dtype));
    }
    group->reduce(std::span(&sum, 1));
    group->broadcast(std::span(&copy, 1));
    EXPECT_TRUE(same_bits(sum.to.as_in_context(cpu()), expected)) << dtype;
    for (const NDArray& to : copy.to) EXPECT_TRUE(same_bits(to.as_in_context(cpu()), expected)) << to.context();
  }
  EXPECT_FALSE(nccl_adds(DType::boolean));
}

TEST_F(CudaNcclTest, TakesMoreArraysThanNcclDoesInOneCall) {
  const std::vector<Context> gpus = all_gpus();
  const auto group = open_gpu_group(gpus);
  std::vector<GpuGroup::Sum> sums;
  std::vector<GpuGroup::Copy> copies;
  for (int key = 0; key < 5000; ++key) {
    GpuGroup::Sum& sum = sums.emplace_back();
    sum.to = zeros({3}, gpus[0]);
    GpuGroup::Copy& copy = copies.emplace_back();
    copy.from = sum.to;
    for (const Context gpu : gpus) {
      sum.from.push_back(full({3}, key, gpu));
      copy.to.push_back(zeros({3}, gpu));
    }
  }
  for (int round = 0; round < 3; ++round) {
    group->reduce(sums);
    group->broadcast(copies);
  }
  for (size_t key = 0; key < sums.size(); ++key)
    for (const NDArray& to : copies[key].to)
      ASSERT_EQ(to.to_vector<float>(), std::vector<float>(3, static_cast<float>(key * gpus.size()))) << key;
}

NamedArrays trained_by(const std::vector<Context>& contexts, const std::string& store) {
  return trained_on(contexts, store, /*batch_size=*/8, /*epochs=*/4);
}

void expect_the_bits_of_device(const std::vector<Context>& contexts) {
  expect_same_bits(trained_by(contexts, "nccl"), trained_by(contexts, "device"));
}

TEST_F(CudaNcclTest, TheStoreSumsOneGpuAsDeviceDoes) {
  expect_the_bits_of_device({gpu(0)});
  expect_the_bits_of_device({gpu(0), gpu(0)});  // NCCL would refuse it
}

TEST_F(CudaNcclTest, TheStoreAgreesWithDeviceOnSeveralGpus) {
  if (all_gpus().size() < 2) GTEST_SKIP() << "there is one GPU here";
  expect_the_bits_of_device({gpu(0), gpu(1)});  // a sum of two numbers has one order
  expect_equal(trained_by(all_gpus(), "nccl"), trained_by(all_gpus(), "device"), {1e-5, 1e-5});
}

// ---- over workers ---------------------------------------------------------------------------------------------------

using namespace std::chrono_literals;

// Waits for a sum, but not for ever.
void finish(WorkerGpus& gpus) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!gpus.finished()) {
    if (std::chrono::steady_clock::now() > end) {
      gpus.abort();
      fail("a sum was not finished within 30 s");
    }
    std::this_thread::sleep_for(1ms);
  }
}

// In place and not, 2100 arrays at once.
void sum_everything(WorkerGpus& gpus, int rank, int size) {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8, DType::int8,
                            DType::int32, DType::int64}) {
    const NDArray from = full({1000}, rank + 1, gpu(0), dtype), to = zeros({1000}, gpu(0), dtype);
    const NDArray both = full({3}, rank + 1, gpu(0), dtype);
    const std::vector<WorkerGpus::Sum> sums = {{from, to}, {both, both}};
    gpus.all_reduce(sums);
    finish(gpus);
    const auto expected = static_cast<float>(size * (size + 1) / 2);
    EXPECT_EQ(to.to_vector<float>(), std::vector<float>(1000, expected)) << dtype;
    EXPECT_EQ(both.to_vector<float>(), std::vector<float>(3, expected)) << dtype;
    EXPECT_EQ(from.to_vector<float>(), std::vector<float>(1000, static_cast<float>(rank + 1))) << dtype;
  }
  // Beside work that has nothing to do with the arrays.
  const NDArray beside = full({1 << 20}, rank + 1, gpu(0)), sum = zeros({1 << 20}, gpu(0)),
                other = ones({1 << 24}, gpu(0));
  waitall();
  for (int i = 0; i < 20; ++i) other.fill(i);
  const std::vector<WorkerGpus::Sum> at_once = {{beside, sum, /*after_queue=*/false}};
  gpus.all_reduce(at_once);
  finish(gpus);
  EXPECT_EQ(sum.to_vector<float>(), std::vector<float>(1 << 20, static_cast<float>(size * (size + 1) / 2)));
  std::vector<WorkerGpus::Sum> many;
  for (int key = 0; key < 2100; ++key) {
    const NDArray array = full({2}, key, gpu(0));
    many.push_back({array, array});
  }
  gpus.all_reduce(many);
  finish(gpus);
  for (size_t key = 0; key < many.size(); ++key)
    ASSERT_EQ(many[key].to.to_vector<float>(),
              std::vector<float>(2, static_cast<float>(size) * static_cast<float>(key)));
}

TEST_F(CudaNcclTest, OneWorkerSumsOnItsGpu) {
  const auto connector = nccl_connector();
  ASSERT_TRUE(connector->takes(gpu(0), DType::float32));
  EXPECT_FALSE(connector->takes(gpu(0), DType::boolean));
  EXPECT_FALSE(connector->takes(cpu(), DType::float32));
  EXPECT_EQ(connector->identity(gpu(0)).size(), 32u);
  const auto gpus = connector->connect(gpu(0), connector->make_id(), 0, 1);
  sum_everything(*gpus, 0, 1);
  gpus->abort();
  EXPECT_TRUE(fails_with([&] { gpus->all_reduce({}); }, "no longer connected"));
}

// NCCL's, with counts of connections and of sums that wait for no queue.
class CountingGpus final : public WorkerGpus {
 public:
  CountingGpus(std::unique_ptr<WorkerGpus> nccl, std::atomic<int>& early) : nccl_(std::move(nccl)), early_(early) {}
  void all_reduce(std::span<const Sum> sums) override {
    early_ += static_cast<int>(std::ranges::count_if(sums, [](const Sum& sum) { return !sum.after_queue; }));
    nccl_->all_reduce(sums);
  }
  bool finished() override { return nccl_->finished(); }
  void abort() override { nccl_->abort(); }

 private:
  const std::unique_ptr<WorkerGpus> nccl_;
  std::atomic<int>& early_;
};

class CountingConnector final : public GpuConnector {
 public:
  bool takes(Context context, DType dtype) const override { return nccl_->takes(context, dtype); }
  std::string identity(Context gpu) const override { return nccl_->identity(gpu); }
  Id make_id() const override { return nccl_->make_id(); }
  std::unique_ptr<WorkerGpus> connect(Context gpu, const Id& id, int rank, int size) const override {
    ++connections;
    return std::make_unique<CountingGpus>(nccl_->connect(gpu, id, rank, size), early);
  }
  mutable std::atomic<int> connections = 0, early = 0;

 private:
  const std::shared_ptr<const GpuConnector> nccl_ = nccl_connector();
};

// The store of `workers` threads on one GPU. Returns the number of connections.
int train_on_one_gpu(int workers) {
  const auto connector = std::make_shared<CountingConnector>();
  const auto thrown =
      run_job(workers,
              [&](Worker& worker) {
                DistStore store("horovod", DistStore::Kind::allreduce, DistStore::SumOn::device, worker.peers);
                for (int step = 1; step <= 3; ++step) {
                  const std::vector<NDArray> arrays = {full({100}, step, gpu(0)), full({7}, 2 * step, gpu(0))};
                  const std::vector<NDArray> outs = {zeros({100}, gpu(0)), zeros({7}, gpu(0))};
                  store.pushpull({"a", "b"}, {{arrays[0]}, {arrays[1], arrays[1]}}, {{outs[0]}, {outs[1]}});
                  const auto sum = static_cast<float>(workers * step);
                  EXPECT_EQ(outs[0].to_vector<float>(), std::vector<float>(100, sum));
                  EXPECT_EQ(outs[1].to_vector<float>(), std::vector<float>(7, 4 * sum));
                }
              },
              {.peers = {.gpus = connector}});
  for (const std::string& text : thrown) EXPECT_EQ(text, "");
  return connector->connections;
}

TEST_F(CudaNcclTest, AJobOfOneWorkerSumsByNccl) { EXPECT_EQ(train_on_one_gpu(1), 1); }

// Gradients that are complete during backward are summed then, and training gives the bits of steps without that.
TEST_F(CudaNcclTest, FitSumsGradientsDuringBackward) {
  constexpr int64_t wide = 600;
  Symbol net = Symbol::variable("data");
  for (const char* const name : {"fc1", "fc2", "fc3"}) net = fully_connected(net, {.num_hidden = wide}, name);
  net = softmax_output(net, {}, "softmax");
  const auto connector = std::make_shared<CountingConnector>();
  const auto trained = [&](bool in_fit) {
    const Quiet quiet;
    NamedArrays result;
    const auto work = [&](Worker& worker) {
      const KVStorePtr store =
          std::make_shared<DistStore>("horovod", DistStore::Kind::allreduce, DistStore::SumOn::device, worker.peers);
      seed(7);
      NDArrayIter data(random_array({40, wide}, 3), labels_of(40), {.batch_size = 8});
      Module module(net, {.context = {gpu(0)}});
      module.bind(data.provide_data(), data.provide_label());
      module.init_params();
      if (in_fit) {
        module.fit(data, {.kvstore = store, .num_epoch = 2});
      } else {
        module.init_optimizer({.kvstore = store});
        for (int epoch = 0; epoch < 2; ++epoch) {
          data.reset();
          while (const auto batch = data.next()) {
            module.forward_backward(*batch);
            module.update();
          }
        }
      }
      result = module.get_params().arg_params;
    };
    for (const std::string& thrown : run_job(1, work, {.peers = {.gpus = connector}})) EXPECT_EQ(thrown, "");
    return result;
  };
  const NamedArrays step_by_step = trained(false);
  EXPECT_EQ(connector->early, 0);
  expect_same_bits(trained(true), step_by_step);
  EXPECT_GE(connector->early, 9 * 6) << "of six arrays in ten steps; the first sums use new memory";
}

TEST_F(CudaNcclTest, WorkersThatShareAGpuExchangeThroughTheHost) { EXPECT_EQ(train_on_one_gpu(2), 0); }

// ---- two processes --------------------------------------------------------------------------------------------------

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path.string() + ".part", std::ios::binary) << text;
  fs::rename(path.string() + ".part", path);
}

// Rank 0 waits for rank 1, which has ended: the sum fails or waits until it is aborted, and the GPU can be used again.
void survive_the_other(WorkerGpus& gpus, const fs::path& folder) {
  for (int i = 0; i < 200 && !fs::exists(folder / "done1"); ++i) std::this_thread::sleep_for(100ms);
  std::this_thread::sleep_for(1s);  // the process ends after its file
  const NDArray array = ones({1 << 20}, gpu(0));
  const std::vector<WorkerGpus::Sum> sums = {{array, array}};
  try {
    gpus.all_reduce(sums);
    for (int i = 0; i < 30; ++i) {
      ASSERT_FALSE(gpus.finished()) << "there was nobody to add";
      std::this_thread::sleep_for(100ms);
    }
  } catch (const Error& error) {
    std::printf("NCCL noticed by itself: %s\n", error.what());
  }
  gpus.abort();
  EXPECT_EQ(full({4}, 3, gpu(0)).to_vector<float>(), std::vector<float>(4, 3));
}

// Run by the test below.
TEST(CudaNcclProcess, DISABLED_SumsWithTheOther) {
  const char* const given = std::getenv("SYMBIND_TEST_NCCL");  // "rank folder"
  ASSERT_NE(given, nullptr);
  int rank = 0;
  std::string name;
  std::istringstream(given) >> rank >> name;
  const fs::path folder = name;
  const auto connector = nccl_connector();
  GpuConnector::Id id;
  if (rank == 0) {
    id = connector->make_id();
    write_text(folder / "id", {reinterpret_cast<const char*>(id.data()), id.size()});
  } else {
    for (int i = 0; i < 300 && !fs::exists(folder / "id"); ++i) std::this_thread::sleep_for(100ms);
    const std::string text = text_of(folder / "id");
    ASSERT_EQ(text.size(), id.size()) << "rank 0 has not written its id within 30 s";
    text.copy(reinterpret_cast<char*>(id.data()), id.size());
  }
  std::unique_ptr<WorkerGpus> gpus;
  try {
    gpus = connector->connect(gpu(0), id, rank, 2);
  } catch (const Error& error) {
    write_text(folder / join("refused", rank), error.what());
    FAIL() << error.what();
  }
  sum_everything(*gpus, rank, 2);
  write_text(folder / join("done", rank), "");
  if (HasFailure()) return;
  if (rank == 1) std::_Exit(0);  // without a word to the other
  survive_the_other(*gpus, folder);
  if (!HasFailure()) write_text(folder / "survived", "");
}

TEST_F(CudaNcclTest, TwoProcessesSumOnOneGpu) {
  const fs::path folder = fs::temp_directory_path() / join("symbind_nccl_", ::getpid());
  fs::create_directories(folder);
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  std::vector<std::thread> threads;
  for (const int rank : {0, 1})
    threads.emplace_back([&, rank] {
      const std::string command = join(
          "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX NCCL_HOSTID=host", rank, " NCCL_SOCKET_IFNAME=lo ",
          "NCCL_IB_DISABLE=1 NCCL_DEBUG=WARN 'SYMBIND_TEST_NCCL=", rank, " ", folder.string(), "' timeout -k 5 120 '",
          program, "' --gtest_also_run_disabled_tests --gtest_filter='CudaNcclProcess.*' > '",
          (folder / join("output", rank)).string(), "' 2>&1");
      if (std::system(command.c_str()) != 0) write_text(folder / join("failed", rank), "");
    });
  for (std::thread& thread : threads) thread.join();
  const std::string outputs =
      join("rank 0:\n", text_of(folder / "output0"), "\nrank 1:\n", text_of(folder / "output1"));
  const std::string refusal = text_of(folder / "refused0") + text_of(folder / "refused1");
  const bool done = fs::exists(folder / "done0") && fs::exists(folder / "done1") && fs::exists(folder / "survived");
  const bool failed = fs::exists(folder / "failed0") || fs::exists(folder / "failed1");
  fs::remove_all(folder);
  if (outputs.find("Duplicate GPU") != std::string::npos)
    GTEST_SKIP() << "NCCL refuses two ranks on one GPU: " << refusal;
  EXPECT_TRUE(done && !failed) << outputs;
}

}  // namespace
}  // namespace symbind
