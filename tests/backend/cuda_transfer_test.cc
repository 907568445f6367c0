// Copies between the host and a GPU beside its queue, and what modules do with them: batches that arrive while the GPU
// computes, and metrics that do not wait for it. Skipped where there is no GPU.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "symbind/core/transfer.h"
#include "symbind/symbind.h"

#include "tests/support/gpu_test.h"
#include "tests/support/training.h"

namespace symbind {
using namespace symbind::testing;

namespace {

using CudaTransferTest = GpuTest;

// Work for the queue that takes about a second.
void keep_busy() {
  const NDArray matrix = zeros({8192, 8192}, gpu(0));
  for (int i = 0; i < 500; ++i) dot(matrix, matrix);
}

void start(Upload& upload, const void* data, size_t bytes) { upload.start({{{data, bytes}}}); }
void deliver(Upload& upload, const NDArray& target, DType from) {
  upload.deliver({{{0, target.mutable_data(), target.dtype(), from, target.size()}}});
}

TEST_F(CudaTransferTest, UploadsDeliverTheDataOfTheirLastStart) {
  const auto upload = make_upload(Device::get(gpu(0)));
  for (const int64_t count : {3, 70'000, 70'000, 5'000'000, 0, 12, 6'000'000}) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191);
    const std::vector<float> expected = values;
    const NDArray target({count}, gpu(0));
    start(*upload, values.data(), values.size() * sizeof(float));
    std::fill(values.begin(), values.end(), -1.0F);  // its memory may be reused
    deliver(*upload, target, DType::float32);
    EXPECT_EQ(target.to_vector<float>(), expected) << count;
    start(*upload, values.data(), values.size() * sizeof(float));
    start(*upload, expected.data(), expected.size() * sizeof(float));
    deliver(*upload, target, DType::float32);
    EXPECT_EQ(target.to_vector<float>(), expected) << count << " after a start that was not delivered";
  }
}

// More than one launch copies, of all lengths modulo the 16 bytes that a thread copies, to all distances from their
// multiples, and none writes beside its array.
TEST_F(CudaTransferTest, UploadsDeliverManyArraysTogether) {
  const auto upload = make_upload(Device::get(gpu(0)));
  std::vector<NDArray> arrays;
  for (int64_t i = 0; i < 40; ++i)
    arrays.push_back(random_array({i % 5 == 4 ? 200'003 + i : 3 * i}, 9, 0, 256, DType::uint8));
  std::vector<Upload::Source> sources;
  for (const NDArray& array : arrays) sources.push_back({array.data(), array.bytes()});
  upload->start(sources);
  const NDArray all({10'000'000}, gpu(0), DType::uint8);
  all.fill(7);
  std::vector<Upload::Target> targets;
  std::vector<NDArray> at;
  int64_t begin = 1;
  for (size_t i = arrays.size(); i-- > 0;) {
    at.push_back(all.slice(begin, begin + arrays[i].size()));
    targets.push_back({i, at.back().mutable_data(), DType::uint8, DType::uint8, arrays[i].size()});
    begin += arrays[i].size() + 1;
  }
  ASSERT_LT(begin, all.size());
  upload->deliver(targets);
  const std::vector<uint8_t> result = all.to_vector<uint8_t>();
  std::vector<uint8_t> expected(result.size(), 7);
  begin = 1;
  for (size_t i = arrays.size(); i-- > 0;) {
    std::memcpy(expected.data() + begin, arrays[i].data(), arrays[i].bytes());
    begin += arrays[i].size() + 1;
  }
  EXPECT_TRUE(result == expected);
}

TEST_F(CudaTransferTest, UploadsConvertAsTheHostDoes) {
  const auto upload = make_upload(Device::get(gpu(0)));
  for (const DType from : {DType::uint8, DType::int32, DType::float64, DType::float16})
    for (const DType to : {DType::float32, DType::float16, DType::bfloat16}) {
      const NDArray data = random_array({1000}, 7, 0, 200, from), target({1000}, gpu(0), to);
      start(*upload, data.data(), data.bytes());
      deliver(*upload, target, from);
      EXPECT_TRUE(same_bits(target.as_copy_in(cpu()), data.astype(to))) << from << " to " << to;
    }
}

TEST_F(CudaTransferTest, UploadsDoNotWaitForTheQueue) {
  Device& device = Device::get(gpu(0));
  const auto upload = make_upload(device);
  const NDArray data = counted({1'000'000}), target({1'000'000}, gpu(0)), watched = ones({1}, gpu(0));
  start(*upload, data.data(), data.bytes());  // memory is allocated
  deliver(*upload, target, DType::float32);
  device.synchronize();
  keep_busy();
  const auto end_of_work = start_download(device, watched.data(), watched.bytes());
  start(*upload, data.data(), data.bytes());
  start(*upload, data.data(), data.bytes());  // waits until the copy before it is done
  EXPECT_FALSE(end_of_work->arrived());
  deliver(*upload, target, DType::float32);
  EXPECT_TRUE(same_bits(target.as_copy_in(cpu()), data));
}

TEST_F(CudaTransferTest, DownloadsHaveTheValuesOfTheirTime) {
  Device& device = Device::get(gpu(0));
  const NDArray array({100'000}, gpu(0));
  std::vector<std::unique_ptr<Download>> downloads;
  for (int i = 0; i < 20; ++i) {
    array.fill(i);
    downloads.push_back(start_download(device, array.data(), array.bytes()));
    if (i % 3 == 0) start_download(device, array.data(), array.bytes());  // never waited for
  }
  array.fill(-1);
  for (int i = 0; i < 20; ++i) {
    const auto* const values = static_cast<const float*>(downloads[static_cast<size_t>(i)]->data());
    EXPECT_EQ(std::vector<float>(values, values + array.size()),
              std::vector<float>(static_cast<size_t>(array.size()), static_cast<float>(i)));
    EXPECT_TRUE(downloads[static_cast<size_t>(i)]->arrived());
  }
  const auto nothing = start_download(device, array.data(), 0);
  EXPECT_TRUE(nothing->arrived());
  EXPECT_EQ(nothing->data(), nullptr);
}

TEST_F(CudaTransferTest, MemoryGoesBackToThePool) {
  Device& device = Device::get(gpu(0));
  const NDArray data = counted({300'000}), there = data.as_copy_in(gpu(0));
  const int64_t before = device.memory().live;
  {
    const auto upload = make_upload(device);
    start(*upload, data.data(), data.bytes());
    const auto download = start_download(device, there.data(), there.bytes());
    EXPECT_EQ(device.memory().live, before + 2 * static_cast<int64_t>(data.bytes()));
  }
  EXPECT_EQ(device.memory().live, before);
}

// ---- Modules --------------------------------------------------------------------------------------------------------

const OptimizerParams momentum{{"learning_rate", 0.1}, {"momentum", 0.9}};

// The steps of fit() without prepare(), waiting after each.
NamedArrays trained_step_by_step(NDArrayIter& data, int epochs) {
  Module module(small_network(), {.context = {gpu(0)}});
  module.bind(data.provide_data(), data.provide_label());
  module.init_params({.arg_params = first_values()});
  module.init_optimizer({.optimizer_params = momentum});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    data.reset();
    while (const auto batch = data.next()) {
      module.forward_backward(*batch);
      module.update();
      waitall();
    }
  }
  return module.get_params().arg_params;
}

TEST_F(CudaTransferTest, FitGivesTheBitsOfItsStepsOneByOne) {
  const Quiet quiet;
  for (const bool shuffle : {false, true}) {
    seed(3);
    NDArrayIter data = batches(400, 10, shuffle);
    const NamedArrays expected = trained_step_by_step(data, 3);
    seed(3);
    NDArrayIter again = batches(400, 10, shuffle);
    Module module(small_network(), {.context = {gpu(0)}});
    module.fit(again, {.optimizer_params = momentum, .arg_params = first_values(), .num_epoch = 3});
    expect_same_bits(module.get_params().arg_params, expected);
  }
}

// The GPU counts some of them.
void expect_same_values(const EvalMetric::NameValues& actual, const EvalMetric::NameValues& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, value] = expected[i];
    const bool has_same_bits = name == "accuracy" || name == "pcc";
    EXPECT_EQ(actual[i].first, name);
    EXPECT_NEAR(actual[i].second, value, has_same_bits ? 0 : 1e-6 * std::abs(value)) << name;
  }
}

TEST_F(CudaTransferTest, MetricsOfFitAndScoreHaveTheValuesOfImmediateOnes) {
  const Quiet quiet;
  const std::vector<std::string> names{"acc", "ce", "pcc", "nll_loss", "loss"};
  NDArrayIter data = batches(45, 10);  // the last batch is filled up
  Module module(small_network(), {.context = {gpu(0)}});
  const EvalMetricPtr metric = EvalMetric::create(names), immediate = EvalMetric::create(names);
  int compared = 0;
  const auto callback = [&](const BatchEndParam& at) {
    const auto& batch = *std::any_cast<const DataBatch*>(at.locals.at("data_batch"));
    const int64_t valid = 10 - batch.pad;
    immediate->update({batch.label[0].slice(0, valid)}, {module.get_outputs()[0].slice(0, valid).as_copy_in(cpu())});
    if (at.nbatch % 2 == 0) return;
    expect_same_values(metric->get(), immediate->get());
    ++compared;
  };
  module.fit(data, {.eval_metric = metric,
                    .batch_end_callback = {callback},
                    .optimizer_params = momentum,
                    .arg_params = first_values(),
                    .num_epoch = 1});
  expect_same_values(metric->get_global(), immediate->get_global());
  immediate->reset();
  const EvalMetric::NameValues scored = module.score(data, metric, {.batch_end_callback = {callback}});
  expect_same_values(scored, immediate->get());
  EXPECT_EQ(compared, 4);
}

TEST_F(CudaTransferTest, AnIndexOutsideItsAxisIsReportedWhenTheMetricIsRead) {
  const Quiet quiet;
  const Symbol rows = take(Symbol::variable("table"), Symbol::variable("data"), {.mode = "raise"}, "rows");
  Module module(softmax_output(rows, {}, "softmax"), {.data_names = {"data", "table"}, .context = {gpu(0)}});
  module.bind({{"data", {2}}, {"table", {2, 4}}}, {{"softmax_label", {2}}}, {.for_training = false});
  module.init_params();
  const EvalMetricPtr metric = EvalMetric::create("acc");
  const DataBatch batch{.data = {array({1, 9}), ones({2, 4})}, .label = {zeros({2})}};
  module.forward(batch, false);
  module.update_metric(*metric, batch.label);
  EXPECT_TRUE(fails_with([&] { metric->get(); }, "index 9 is outside of", "of length 2"));
  waitall();
}

}  // namespace
}  // namespace symbind
