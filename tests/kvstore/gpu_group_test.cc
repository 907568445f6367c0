// The nccl store without GPUs: which arrays it gives to a group, with CPU contexts in place of GPUs, and what it says
// where NCCL is missing. (On a GPU: tests/backend/cuda_nccl_test.cc.)
#include "symbind/kvstore/gpu_group.h"

#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/kvstore/local.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const bool contexts_have_their_own_gpus = ::unsetenv("SYMBIND_GPUS") == 0;

using Floats = std::vector<float>;
using Contexts = std::vector<Context>;

TEST(GpuGroup, HasDifferentGpusOnly) {
  EXPECT_TRUE(are_different_gpus(Contexts{gpu(0), gpu(1)}));
  EXPECT_TRUE(are_different_gpus(Contexts{gpu(3), gpu(0), gpu(7)}));
  EXPECT_FALSE(are_different_gpus(Contexts{}));
  EXPECT_FALSE(are_different_gpus(Contexts{gpu(0)})) << "one GPU has nothing to exchange";
  EXPECT_FALSE(are_different_gpus(Contexts{gpu(0), gpu(1), gpu(0)})) << "NCCL refuses a GPU that is listed twice";
  EXPECT_FALSE(are_different_gpus(Contexts{gpu(0), cpu(1)}));
  EXPECT_FALSE(are_different_gpus(Contexts{cpu(0), cpu(1)}));
}

// Collects what is logged while it exists.
class Messages {
 public:
  Messages() : before_(set_log_sink([this](LogLevel, std::string_view text) { all += std::string(text) + "\n"; })) {}
  ~Messages() { set_log_sink(before_); }
  std::string all;

 private:
  LogSink before_;
};

TEST(NcclStore, SumsWithoutNcclAfterAWarning) {
  Messages messages;
  const auto store = KVStore::create("nccl");
  const std::string problem = nccl_problem();
  if (problem.empty()) {
    EXPECT_EQ(messages.all, "");
  } else {
    EXPECT_NE(messages.all.find(problem), std::string::npos) << messages.all;
    EXPECT_NE(problem.find("install"), std::string::npos) << problem;
    EXPECT_FALSE(nccl_groups());
    EXPECT_FALSE(error_of([] { open_gpu_group(Contexts{gpu(0)}); }).empty());
  }
  store->init({"w"}, {zeros({2})});
  const NDArray out = zeros({2});
  store->pushpull({"w"}, {{ones({2}), ones({2}, cpu(1))}}, {{out}});
  EXPECT_EQ(out.to_vector<float>(), (Floats{2, 2}));
}

// CPU contexts in place of GPUs. Counts its calls.
class StandIn final : public GpuGroup {
 public:
  explicit StandIn(Contexts contexts) : contexts_(std::move(contexts)) {}

  void reduce(std::span<const Sum> sums) override {
    ++reductions;
    for (const Sum& sum : sums) {
      ++keys;
      check(sum.from, sum.to);
      NDArray total = sum.from[0].as_copy_in(sum.to.context());
      for (size_t i = 1; i < sum.from.size(); ++i) total += sum.from[i].as_in_context(sum.to.context());
      total.copyto(sum.to);
    }
  }

  void broadcast(std::span<const Copy> copies) override {
    ++broadcasts;
    std::set<const Storage*> written;
    for (const Copy& copy : copies) {
      check(copy.to, copy.from);
      for (const NDArray& to : copy.to) {
        EXPECT_TRUE(written.insert(&to.storage()).second) << "the order of copies in a group is undefined";
        copy.from.copyto(to);
      }
    }
  }

  int reductions = 0, keys = 0, broadcasts = 0;

 private:
  void check(const std::vector<NDArray>& arrays, const NDArray& one) const {
    ASSERT_EQ(arrays.size(), contexts_.size());
    EXPECT_NE(std::find(contexts_.begin(), contexts_.end(), one.context()), contexts_.end()) << one.context();
    EXPECT_GT(one.size(), 0);
    for (size_t i = 0; i < arrays.size(); ++i) {
      EXPECT_EQ(arrays[i].context(), contexts_[i]);
      EXPECT_EQ(arrays[i].shape(), one.shape());
      EXPECT_EQ(arrays[i].dtype(), one.dtype());
      EXPECT_FALSE(arrays[i].same_memory(one));
    }
  }

  const Contexts contexts_;
};

class GroupedStore : public ::testing::Test {
 protected:
  GpuGroup* group(const Contexts& contexts, DType dtype) {
    const std::set<Context> different(contexts.begin(), contexts.end());
    if (contexts.size() < 2 || different.size() < contexts.size() || dtype == DType::boolean) return nullptr;
    return &groups_.try_emplace(contexts, contexts).first->second;
  }
  StandIn& pair() { return groups_.try_emplace({cpu(0), cpu(1)}, Contexts{cpu(0), cpu(1)}).first->second; }

  std::map<Contexts, StandIn> groups_;
  LocalStore store_{"nccl", LocalStore::SumOn::device,
                    [this](const Contexts& contexts, DType dtype) { return group(contexts, dtype); }};
};

// Whole numbers, whose sums do not depend on the order.
std::vector<NDArray> on(const Contexts& contexts, const Shape& shape, double first, DType dtype = DType::float32) {
  std::vector<NDArray> arrays;
  for (const Context context : contexts) arrays.push_back(full(shape, first++, context, dtype));
  return arrays;
}

Floats values(const NDArray& array) { return array.to_vector<float>(); }

TEST_F(GroupedStore, SumsAllKeysOfAPushTogether) {
  store_.init({"a", "b", "c"}, {zeros({2}), zeros({3}), zeros({1})});
  const Contexts both{cpu(0), cpu(1)};
  store_.push({"a", "b", "c"}, {on(both, {2}, 1), on(both, {3}, 5), on({cpu(1), cpu(0)}, {1}, 9)});
  EXPECT_EQ(pair().reductions, 1);
  EXPECT_EQ(pair().keys, 2);
  const KVStore::Values outs = {on(both, {2}, 0), on(both, {3}, 0), on(both, {1}, 0)};
  store_.pull({"a", "b", "c"}, outs);
  EXPECT_EQ(pair().broadcasts, 1);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(values(outs[0][i]), Floats(2, 3));
    EXPECT_EQ(values(outs[1][i]), Floats(3, 11));
    EXPECT_EQ(values(outs[2][i]), Floats(1, 19));
  }
}

TEST_F(GroupedStore, AgreesWithDeviceOverAnOptimizer) {
  const Contexts three{cpu(2), cpu(0), cpu(1)};
  const auto device = KVStore::create("device");
  const std::vector<KVStore*> stores = {&store_, device.get()};
  for (KVStore* const store : stores) {
    store->init({0, 1}, {ones({7, 3}), zeros({5})});
    store->set_optimizer(Optimizer::create("sgd", {{"learning_rate", 0.5}, {"momentum", 0.9}}));
  }
  for (int step = 0; step < 3; ++step) {
    std::vector<KVStore::Values> outs;
    for (KVStore* const store : stores) {
      outs.push_back({on(three, {7, 3}, 0), on(three, {5}, 0)});
      store->pushpull({0, 1}, {on(three, {7, 3}, step), on(three, {5}, -step)}, outs.back());
    }
    for (size_t key = 0; key < 2; ++key)
      for (size_t i = 0; i < three.size(); ++i)
        EXPECT_TRUE(same_bits(outs[0][key][i], outs[1][key][i])) << "step " << step << ", key " << key;
  }
  EXPECT_EQ(groups_.at(three).reductions, 3);
  EXPECT_EQ(groups_.at(three).broadcasts, 3);
}

TEST_F(GroupedStore, SumsAsDeviceDoesWithoutAGroup) {
  const NDArray out = zeros({2});
  store_.init({"w"}, {zeros({2})});
  for (const Contexts& contexts : {Contexts{cpu(0)}, Contexts{cpu(0), cpu(0)}, Contexts{cpu(0), cpu(1), cpu(0)}}) {
    const std::vector<NDArray> arrays = on(contexts, {2}, 1);
    double expected = 0;
    for (const NDArray& array : arrays) expected += array.to_vector<double>()[0];
    store_.pushpull({"w"}, {arrays}, {{out}});
    EXPECT_EQ(values(out), Floats(2, static_cast<float>(expected)));
  }
  EXPECT_TRUE(groups_.empty());
}

TEST_F(GroupedStore, LeavesArraysThatNoGroupTakesToDevice) {
  const Contexts both{cpu(0), cpu(1)};
  store_.init({"w", "none", "flag", "elsewhere"},
              {zeros({2}), zeros({0, 2}), zeros({2}, cpu(), DType::boolean), zeros({2})});
  store_.push({"none"}, {on(both, {0, 2}, 1)});
  store_.push({"flag"}, {on(both, {2}, 0, DType::boolean)});
  EXPECT_EQ(pair().reductions, 0);

  store_.push({"w"}, {on(both, {2}, 1)});
  EXPECT_EQ(pair().reductions, 1);
  const std::vector<NDArray> doubles = on(both, {2}, 0, DType::float64);
  store_.pull({"w"}, {doubles});
  EXPECT_EQ(doubles[1].to_vector<double>(), std::vector<double>(2, 3)) << "a pull converts types";
  const NDArray out = zeros({2});
  store_.pull({"w"}, {{out, out}});
  EXPECT_EQ(values(out), Floats(2, 3));

  // The first push has placed the value on cpu(2), which is not in the group of the second.
  store_.push({"elsewhere"}, {on({cpu(2)}, {2}, 1)});
  store_.push({"elsewhere"}, {on(both, {2}, 4)});
  const std::vector<NDArray> outs = on(both, {2}, 0);
  store_.pull({"elsewhere"}, {outs});
  EXPECT_EQ(values(outs[1]), Floats(2, 9));
  EXPECT_EQ(pair().reductions, 1);
  EXPECT_EQ(pair().broadcasts, 0);
}

TEST_F(GroupedStore, PullsIntoOneArrayInTheOrderOfTheKeys) {
  const Contexts both{cpu(0), cpu(1)};
  store_.init({"a", "b"}, {full({2}, 1), full({2}, 2)});
  store_.push({"a", "b"}, {on(both, {2}, 1), on(both, {2}, 5)});
  const std::vector<NDArray> outs = on(both, {2}, 0);
  store_.pull({"b", "a"}, {outs, outs});
  EXPECT_EQ(values(outs[1]), Floats(2, 3));
}

TEST_F(GroupedStore, CompressesAsDeviceDoes) {
  const Contexts both{cpu(0), cpu(1)};
  store_.set_gradient_compression({{"type", "2bit"}, {"threshold", "0.5"}});
  store_.init({"w"}, {zeros({4})});
  const std::vector<NDArray> outs = on(both, {4}, 0);
  store_.pushpull({"w"}, {on(both, {4}, 1)}, {outs});
  EXPECT_EQ(values(outs[0]), Floats(4, 1)) << "one threshold from each context";
  EXPECT_EQ(pair().reductions, 0);
}

}  // namespace
}  // namespace symbind::testing
