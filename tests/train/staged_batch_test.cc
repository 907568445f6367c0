#include "symbind/train/staged_batch.h"

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "symbind/symbind.h"

#include "tests/support/arrays.h"
#include "tests/support/training.h"

namespace symbind {
using namespace symbind::testing;

namespace {

// Memory that counts as a GPU's, on the host.
class OtherMemory final : public Device {
 public:
  OtherMemory() : Device(gpu(0)) {}
  void copy_from_host(void* dst, const void* src, size_t bytes) override { std::memcpy(dst, src, bytes); }
  void copy_to_host(void* dst, const void* src, size_t bytes) override { std::memcpy(dst, src, bytes); }
  void copy_within(void* dst, const void* src, size_t bytes) override { std::memmove(dst, src, bytes); }
  void copy_from_device(void*, Device&, const void*, size_t) override { symbind::fail("not needed here"); }
  void fill(void*, DType, int64_t, double) override { fail("not needed here"); }
  void cast(void* dst, DType to, const void* src, DType from, int64_t count) override {
    Device::get(cpu()).cast(dst, to, src, from, count);
  }
  void synchronize() override {}

 protected:
  void* allocate_bytes(size_t bytes) override { return std::malloc(bytes); }
  void release_bytes(void* data, size_t) noexcept override { std::free(data); }
};

struct Counts {
  int made = 0, started = 0, delivered = 0;
  bool has_no_memory = false;
};

class CountedUpload final : public Upload {
 public:
  CountedUpload(Device& device, Counts& counts) : device_(device), counts_(counts) { ++counts.made; }
  void start(std::span<const Source> sources) override {
    ++counts_.started;
    buffers_.clear();
    if (counts_.has_no_memory) fail("[memory] none");
    for (const Source& source : sources) {
      const auto* const begin = static_cast<const std::byte*>(source.data);
      buffers_.emplace_back(begin, begin + source.bytes);
    }
  }
  void deliver(std::span<const Target> targets) override {
    ++counts_.delivered;
    for (const Target& target : targets)
      device_.cast(target.data, target.to, buffers_.at(target.source).data(), target.from, target.count);
  }

 private:
  Device& device_;
  Counts& counts_;
  std::vector<std::vector<std::byte>> buffers_;
};

class StagedBatchTest : public ::testing::Test {
 protected:
  NDArray on_device(const Shape& shape, DType dtype = DType::float32) {
    const size_t bytes = static_cast<size_t>(shape.size()) * size_of(dtype);
    return NDArray(std::make_shared<Storage>(device_, bytes), 0, shape, dtype);
  }
  static std::vector<double> values(const NDArray& array) { return array.to_vector<double>(); }

  void start(const NDArray& given, BatchSlice slice, const NDArray& part, const NDArray& target) {
    staged_.start({{{"data", given, slice, target}}}, {{part}});
  }
  bool deliver(const NDArray& given, BatchSlice slice, const NDArray& target) {
    return staged_.deliver({{{"data", given, slice, target}}}).at(0);
  }

  OtherMemory device_;
  Counts counts_;
  StagedBatch staged_{[this](Device& device) { return std::make_unique<CountedUpload>(device, counts_); }};
};

TEST_F(StagedBatchTest, DeliversWhatWasStagedOnce) {
  const NDArray data = counted({4, 2}), target = on_device({4, 2});
  for (int batch = 0; batch < 3; ++batch) {
    start(data, {0, 4}, data, target);
    EXPECT_TRUE(deliver(data, {0, 4}, target));
    EXPECT_EQ(values(target), values(data));
    EXPECT_FALSE(deliver(data, {0, 4}, target)) << "it is no longer staged";
  }
  EXPECT_EQ(counts_.made, 1) << "the buffer is used again";
  EXPECT_EQ(counts_.delivered, 3);
}

TEST_F(StagedBatchTest, AnotherHandleOfTheSameArrayIsTheSame) {
  const NDArray all = counted({8, 2}), target = on_device({4, 2});
  start(all.slice(4, 8), {0, 4}, all.slice(4, 8), target);
  EXPECT_TRUE(deliver(all.slice(4, 8), {0, 4}, target));
  EXPECT_EQ(values(target), values(all.slice(4, 8)));
}

TEST_F(StagedBatchTest, ConvertsOnTheDevice) {
  const NDArray data = counted({4, 2}, DType::uint8), target = on_device({4, 2});
  start(data, {0, 4}, data, target);
  EXPECT_TRUE(deliver(data, {0, 4}, target));
  EXPECT_EQ(values(target), values(data));
}

TEST_F(StagedBatchTest, AllInputsAreCopiedTogether) {
  const NDArray data = counted({4, 2}), labels = labels_of(4), other = counted({4, 3});
  const NDArray data_there = on_device({4, 2}), labels_there = on_device({4}, DType::float16),
                other_there = on_device({4, 3});
  const std::vector<StagedBatch::Input> inputs = {{"data", data, {0, 4}, data_there},
                                                  {"label", labels, {0, 4}, labels_there},
                                                  {"other", other, {0, 4}, other_there}};
  staged_.start(inputs, {{data, labels, other}});
  other(0, 0) = -1;
  EXPECT_EQ(staged_.deliver({{inputs[1], inputs[2], inputs[0]}}), (std::vector{true, false, true}));
  EXPECT_EQ(values(data_there), values(data));
  EXPECT_EQ(values(labels_there), values(labels));
  EXPECT_EQ(counts_.made, 1);
  EXPECT_EQ(counts_.started, 1);
  EXPECT_EQ(counts_.delivered, 1);
}

TEST_F(StagedBatchTest, InputsMayBeOnSeveralDevices) {
  OtherMemory second;
  const NDArray data = counted({4, 2}), here = on_device({4, 2});
  const NDArray there(std::make_shared<Storage>(second, 32), 0, {4, 2}, DType::float32);
  const std::vector<StagedBatch::Input> inputs = {{"first", data, {0, 4}, here}, {"second", data, {0, 4}, there}};
  staged_.start(inputs, {{data, data}});
  EXPECT_EQ(staged_.deliver(inputs), (std::vector{true, true}));
  EXPECT_EQ(values(here), values(data));
  EXPECT_EQ(values(there), values(data));
  EXPECT_EQ(counts_.made, 2);
}

TEST_F(StagedBatchTest, ABatchThatCouldNotStartIsNotDelivered) {
  const NDArray data = counted({4, 2}), target = on_device({4, 2});
  start(data, {0, 4}, data, target);
  counts_.has_no_memory = true;
  EXPECT_TRUE(fails_with([&] { start(data, {0, 4}, data, target); }, "[memory] none"));
  EXPECT_FALSE(deliver(data, {0, 4}, target));
  counts_.has_no_memory = false;
  start(data, {0, 4}, data, target);
  EXPECT_TRUE(deliver(data, {0, 4}, target));
}

TEST_F(StagedBatchTest, AnArrayThatWasWrittenSinceIsNotDelivered) {
  const NDArray data = counted({4, 2}), target = on_device({4, 2});
  start(data, {0, 4}, data, target);
  data(1, 1) = -1;
  EXPECT_FALSE(deliver(data, {0, 4}, target));
  start(data, {0, 4}, data, target);
  data.storage().mark_exported();  // whoever has the pointer may have written
  EXPECT_FALSE(deliver(data, {0, 4}, target));
  EXPECT_EQ(counts_.delivered, 0);
}

TEST_F(StagedBatchTest, AnotherArrayIsNotDelivered) {
  const NDArray data = counted({4, 2}), target = on_device({4, 2});
  const auto after_staging = [&](const NDArray& given, BatchSlice slice, const NDArray& to) {
    start(data, {0, 4}, data, target);
    return deliver(given, slice, to);
  };
  EXPECT_FALSE(after_staging(data.copy(), {0, 4}, target));
  EXPECT_FALSE(after_staging(data.reshape({2, 4}), {0, 4}, on_device({2, 4})));
  EXPECT_FALSE(after_staging(data.prefix({4, 2}, DType::int32), {0, 4}, target));
  EXPECT_FALSE(after_staging(data, {0, 2}, on_device({2, 2})));
  EXPECT_FALSE(after_staging(data, {0, 4}, on_device({8})));
  OtherMemory second;
  EXPECT_FALSE(after_staging(data, {0, 4}, NDArray(std::make_shared<Storage>(second, 32), 0, {4, 2}, DType::float32)));
  EXPECT_TRUE(after_staging(data, {0, 4}, target));
}

TEST_F(StagedBatchTest, WhatCannotBeWatchedOrNeedsNoCopyIsNotStaged) {
  const NDArray data = counted({4, 2}), target = on_device({4, 2});
  start(data, {0, 4}, data, zeros({4, 2}));  // a CPU
  const NDArray there = on_device({4, 2});
  start(there, {0, 4}, there, target);
  std::vector<float> memory(8);
  const NDArray borrowed = NDArray::from_blob(memory.data(), {4, 2});
  start(borrowed, {0, 4}, borrowed, target);
  EXPECT_EQ(counts_.started, 0);
  EXPECT_FALSE(deliver(borrowed, {0, 4}, target));
}

// ---- Through modules ------------------------------------------------------------------------------------------------

TEST(Prepare, ABatchThatIsChangedOrReplacedIsComputedAsItIsInForward) {
  for (const Context context : all_devices()) {
    const auto bound = [&] {
      auto module = std::make_unique<Module>(small_network(), ModuleOptions{.context = {context, context}});
      module->bind({{"data", {6, 4}}}, {{"softmax_label", {6}}});
      module->init_params({.arg_params = first_values()});
      return module;
    };
    const auto module = bound(), other = bound();
    const auto outputs = [](Module& of, const DataBatch& batch) {
      of.forward(batch, true);
      return of.get_outputs()[0].to_vector<float>();
    };
    DataBatch batch{.data = {random_array({6, 4}, 1)}, .label = {labels_of(6)}};
    module->prepare(batch);
    EXPECT_EQ(outputs(*module, batch), outputs(*other, batch)) << context;
    module->prepare(batch);
    batch.data[0].fill(0.5);
    EXPECT_EQ(outputs(*module, batch), outputs(*other, batch)) << context << ": changed";
    module->prepare(batch);
    const DataBatch replaced{.data = {random_array({6, 4}, 2)}, .label = {labels_of(6)}};
    EXPECT_EQ(outputs(*module, replaced), outputs(*other, replaced)) << context << ": replaced";
    EXPECT_EQ(outputs(*module, batch), outputs(*other, batch)) << context << ": prepared long before";
    const DataBatch smaller{.data = {random_array({4, 4}, 3)}, .label = {labels_of(4)}};
    module->prepare(smaller);
    EXPECT_EQ(outputs(*module, smaller), outputs(*other, smaller)) << context << ": of another shape";
    module->prepare(batch);
    EXPECT_EQ(outputs(*module, smaller), outputs(*other, smaller)) << context << ": of another shape than prepared";
    const DataBatch bytes{.data = {random_array({6, 4}, 4, 0, 9, DType::uint8)}, .label = {labels_of(6)}};
    module->prepare(bytes);
    EXPECT_EQ(outputs(*module, bytes), outputs(*other, bytes)) << context << ": of another type";
    module->prepare({.data = {}});  // ignored: forward() reports it
    EXPECT_TRUE(fails_with([&] { module->forward(DataBatch{.data = {}}, false); }, "0 data arrays"));
  }
}

// An iterator that writes every batch into the same arrays.
class OneBuffer final : public DataIter {
 public:
  explicit OneBuffer(NDArrayIter& source) : source_(source) {}
  std::vector<DataDesc> provide_data() const override { return source_.provide_data(); }
  std::vector<DataDesc> provide_label() const override { return source_.provide_label(); }
  void reset() override { source_.reset(); }
  std::optional<DataBatch> next() override {
    const auto batch = source_.next();
    if (!batch) return std::nullopt;
    batch->data[0].copyto(data_);
    batch->label[0].copyto(label_);
    return DataBatch{.data = {data_}, .label = {label_}};
  }

 private:
  NDArrayIter& source_;
  NDArray data_{Shape{10, 4}}, label_{Shape{10}};
};

TEST(Prepare, FitWithBatchesThatShareTheirMemoryGivesTheSameBits) {
  const Quiet quiet;
  for (const Context context : all_devices()) {
    const auto train = [&](bool one_buffer) {
      NDArrayIter data = batches();
      OneBuffer buffer(data);
      DataIter& source = one_buffer ? static_cast<DataIter&>(buffer) : data;
      Module module(small_network(), {.context = {context}});
      const EvalMetricPtr metric = EvalMetric::create(std::vector<std::string>{"acc", "ce"});
      std::vector<double> seen;
      const auto callback = [&](const BatchEndParam& at) {
        if (at.nbatch % 2 == 1) seen.push_back(metric->get()[1].second);
      };
      module.fit(source, {.eval_metric = metric,
                          .batch_end_callback = {callback},
                          .optimizer_params = {{"learning_rate", 0.1}, {"momentum", 0.9}},
                          .arg_params = first_values(),
                          .num_epoch = 3});
      return std::pair(module.get_params().arg_params, seen);
    };
    const auto [expected, expected_seen] = train(false);
    const auto [params, seen] = train(true);
    expect_same_bits(params, expected);
    EXPECT_EQ(seen, expected_seen);
    EXPECT_EQ(seen.size(), 6u);
  }
}

}  // namespace
}  // namespace symbind
