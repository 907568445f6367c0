// The store of one process: sums over contexts, updaters, keys.
#include <algorithm>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/kvstore/kvstore.h"

#include "tests/support/arrays.h"
#include "tests/support/oracle.h"

namespace symbind::testing {
namespace {

using Values = KVStore::Values;
using Floats = std::vector<float>;

NDArray pulled(KVStore& store, const ParamKey& key, const Shape& shape, Context context = cpu(),
               DType dtype = DType::float32) {
  NDArray out = zeros(shape, context, dtype);
  store.pull({key}, {{out}});
  return out;
}

// One array per CPU context, of values that do not add up the same way in every order.
std::vector<NDArray> spread(int devices, const Shape& shape, uint64_t seed) {
  std::vector<NDArray> arrays;
  for (int i = 0; i < devices; ++i) {
    const auto number = static_cast<uint64_t>(i);
    NDArray array = random_array(shape, seed + number, -1, 1, DType::float32, cpu(i));
    array *= number % 2 ? 1e-3 / 3 : 1e3 / 3;
    arrays.push_back(array);
  }
  return arrays;
}

Floats added_in_order(const std::vector<NDArray>& arrays) {
  Floats total = arrays[0].to_vector<float>();
  for (size_t i = 1; i < arrays.size(); ++i) {
    const Floats next = arrays[i].to_vector<float>();
    for (size_t k = 0; k < total.size(); ++k) total[k] += next[k];
  }
  return total;
}

class EveryLocalKind : public ::testing::TestWithParam<std::string> {
 protected:
  KVStorePtr store_ = KVStore::create(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Names, EveryLocalKind,
                         ::testing::Values("local", "local_update_cpu", "local_allreduce_cpu", "device",
                                           "local_allreduce_device", "nccl"),
                         [](const auto& each) { return each.param; });

TEST_P(EveryLocalKind, KnowsItsName) {
  EXPECT_EQ(store_->type(), GetParam());
  EXPECT_EQ(store_->rank(), 0);
  EXPECT_EQ(store_->num_workers(), 1);
  store_->barrier();
}

TEST_P(EveryLocalKind, SumsOverContextsInTheirOrder) {
  for (int devices = 1; devices <= 4; ++devices) {
    for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{300, 700}}) {
      const ParamKey key = join(devices, shape);
      store_->init({key}, {zeros(shape)});
      const auto arrays = spread(devices, shape, 7);
      for (int round = 0; round < 3; ++round) {
        store_->push({key}, {arrays});
        EXPECT_EQ(pulled(*store_, key, shape, cpu(3)).to_vector<float>(), added_in_order(arrays));
      }
    }
  }
}

TEST_P(EveryLocalKind, GivesTheUpdaterTheSumOncePerKey) {
  store_->init({5, 3}, {ones({2, 2}), zeros({3})});
  std::vector<std::pair<ParamKey, Floats>> calls;
  store_->set_updater([&](const ParamKey& key, const NDArray& grad, const NDArray& weight) {
    calls.emplace_back(key, grad.to_vector<float>());
    NDArray changed = weight;
    changed += grad * 0.5;
  });
  const NDArray a = full({2, 2}, 1, cpu(0)), b = full({2, 2}, 2, cpu(1)), c = full({2, 2}, 3, cpu(2));
  store_->push({5, 3}, {{a, b, c}, {full({3}, 4)}}, -5);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0], (std::pair<ParamKey, Floats>{5, {6, 6, 6, 6}}));
  EXPECT_EQ(calls[1], (std::pair<ParamKey, Floats>{3, {4, 4, 4}}));
  EXPECT_EQ(pulled(*store_, 5, {2, 2}).to_vector<float>(), (Floats{4, 4, 4, 4}));
  EXPECT_EQ(pulled(*store_, 3, {3}).to_vector<float>(), (Floats{2, 2, 2}));

  store_->set_updater(nullptr);  // from here on a push replaces again
  store_->push({5}, {{a}});
  EXPECT_EQ(pulled(*store_, 5, {2, 2}).to_vector<float>(), (Floats{1, 1, 1, 1}));
}

TEST_P(EveryLocalKind, HoldsCopiesOfWhatItWasGiven) {
  const NDArray start = ones({2}), pushed = full({2}, 3), out = zeros({2});
  store_->init({"w"}, {start});
  start.fill(9);
  EXPECT_EQ(pulled(*store_, "w", {2}).to_vector<float>(), (Floats{1, 1}));
  store_->push({"w"}, {{pushed}});
  pushed.fill(9);
  store_->pull({"w"}, {{out}});
  EXPECT_EQ(out.to_vector<float>(), (Floats{3, 3}));
  out.fill(9);
  EXPECT_EQ(pulled(*store_, "w", {2}).to_vector<float>(), (Floats{3, 3}));
}

TEST_P(EveryLocalKind, StaysFlatOverTenThousandPushes) {
  const Shape shape{64};
  store_->init({"w"}, {zeros(shape)});
  store_->set_updater([](const ParamKey&, const NDArray& grad, const NDArray& weight) { grad.copyto(weight); });
  const auto arrays = spread(3, shape, 1);
  const NDArray out = zeros(shape, cpu(1));
  const auto live = [] {
    int64_t bytes = 0;
    for (int i = 0; i < 4; ++i) bytes += Device::get(cpu(i)).memory().live;
    return bytes;
  };
  store_->pushpull({"w"}, {arrays}, {{out}});
  const int64_t before = live();
  for (int i = 0; i < 4; ++i) Device::get(cpu(i)).reset_peak();
  const int64_t peak = Device::get(cpu(0)).memory().peak;
  for (int i = 0; i < 10000; ++i) store_->pushpull({"w"}, {arrays}, {{out}});
  EXPECT_EQ(live(), before);
  EXPECT_EQ(Device::get(cpu(0)).memory().peak, peak) << "a push took memory, if only for a while";
  EXPECT_EQ(out.to_vector<float>(), added_in_order(arrays));
}

TEST_P(EveryLocalKind, IsSafeFromSeveralThreads) {
  constexpr int threads = 4, rounds = 50;
  for (int i = 0; i < threads; ++i) store_->init({i}, {zeros({1000})});
  store_->set_updater([](const ParamKey&, const NDArray& grad, const NDArray& weight) {
    NDArray changed = weight;
    changed += grad;
  });
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([this, i] {
      const std::vector<NDArray> arrays{full({1000}, i, cpu(0)), full({1000}, 1, cpu(1))};
      const NDArray out = zeros({1000}, cpu(i));
      for (int round = 0; round < rounds; ++round) {
        store_->push({i}, {arrays});
        store_->pull({i}, {{out}});
      }
      EXPECT_EQ(out.to_vector<float>(), Floats(1000, static_cast<float>(rounds * (i + 1))));
    });
  for (std::thread& each : running) each.join();
}

TEST(LocalStore, IsMadeByNameInAnyCase) {
  EXPECT_EQ(KVStore::create()->type(), "local");
  EXPECT_EQ(KVStore::create("LOCAL")->type(), "local");
  EXPECT_EQ(KVStore::create("Local_AllReduce_Device")->type(), "local_allreduce_device");
}

TEST(LocalStore, ListsTheKindsThereAre) {
  for (const char* name : {"dist_sync", "dist_device_sync", "dist_sync_device", "DIST_ASYNC", "dist", "dist_sync_mpi",
                           "p3store_dist", "horovod", "nccl"})
    EXPECT_EQ(KVStore::is_distributed(name), name != std::string_view("nccl")) << name;
  EXPECT_TRUE(fails_with([] { KVStore::create("distant"); }, "\"distant\"", "local_allreduce_device", "dist_async"));
}

TEST(LocalStore, AddsEveryTypeUp) {
  for (const DType dtype :
       {DType::float64, DType::float16, DType::bfloat16, DType::uint8, DType::int8, DType::int32, DType::int64}) {
    const auto store = KVStore::create();
    store->init({"w"}, {zeros({3}, cpu(), dtype)});
    const NDArray a = array({1, 2, 3}, cpu(0), dtype), b = array({4, 5, 6}, cpu(1), dtype);
    store->push({"w"}, {{a, b, a}});
    EXPECT_EQ(pulled(*store, "w", {3}).to_vector<float>(), (Floats{6, 9, 12})) << dtype;
  }
}

TEST(LocalStore, RoundsHalvesOnce) {
  const auto store = KVStore::create();
  store->init({"w"}, {zeros({1}, cpu(), DType::float16)});
  const NDArray big = array({2048}, cpu(), DType::float16), one = array({1}, cpu(), DType::float16);
  store->push({"w"}, {{big, one, one}});  // 2048 + 1 is no half; rounding after each step would stay at 2048
  EXPECT_EQ(pulled(*store, "w", {1}).item(), 2050);
}

TEST(LocalStore, TakesEmptyArrays) {
  const auto store = KVStore::create("device");
  store->init({"w"}, {zeros({0, 3})});
  store->push({"w"}, {{zeros({0, 3}), zeros({0, 3}, cpu(1))}});
  EXPECT_EQ(pulled(*store, "w", {0, 3}).size(), 0);
}

TEST(LocalStore, ConvertsTheTypeOfAPull) {
  const auto store = KVStore::create();
  store->init({"w"}, {array({1, 2.5})});
  EXPECT_EQ(pulled(*store, "w", {2}, cpu(1), DType::float64).to_vector<double>(), (std::vector<double>{1, 2.5}));
}

TEST(LocalStore, PullsIntoOneArrayInTheOrderOfTheKeys) {
  const Shape shape{1 << 20};
  const auto store = KVStore::create();
  store->init({"a", "b"}, {full(shape, 1), full(shape, 2)});
  const NDArray out = zeros(shape);
  for (int round = 0; round < 10; ++round) {
    store->pull({"a", "b"}, {{out}, {out}});
    ASSERT_EQ(out.to_vector<float>(), Floats(1 << 20, 2));
    store->pull({"b", "a"}, {{out}, {out}});
    ASSERT_EQ(out.to_vector<float>(), Floats(1 << 20, 1));
  }
}

TEST(LocalStore, SumsAKeyListedTwiceAsOnePush) {
  const auto store = KVStore::create();
  store->init({3}, {ones({2})});
  int calls = 0;
  store->set_updater([&](const ParamKey&, const NDArray& grad, const NDArray& weight) {
    ++calls;
    grad.copyto(weight);
  });
  store->push({3, 3}, {{ones({2})}, {full({2}, 5)}});
  EXPECT_EQ(pulled(*store, 3, {2}).to_vector<float>(), (Floats{6, 6}));
  EXPECT_EQ(calls, 1);
}

TEST(LocalStore, PassesAnOnlyArrayToTheUpdaterWithoutACopy) {
  for (const char* type : {"local", "device"}) {
    const auto store = KVStore::create(type);
    store->init({"w"}, {zeros({2})});
    const NDArray grad = ones({2});
    bool same = false;
    store->set_updater([&](const ParamKey&, const NDArray& given, const NDArray&) { same = given.same_memory(grad); });
    store->push({"w"}, {{grad}});
    EXPECT_TRUE(same) << type;
  }
}

TEST(LocalStore, SumsArraysOfEveryKindOfDevice) {
  std::vector<NDArray> arrays;
  for (const Context context : all_devices()) {
    arrays.push_back(random_array({33, 17}, arrays.size(), -1, 1, DType::float32, context));
    arrays.push_back(random_array({33, 17}, arrays.size(), -1, 1, DType::float32, context));
  }
  const Floats forwards = added_in_order(arrays);
  std::reverse(arrays.begin(), arrays.end());  // the first decides where `device` sums
  const Floats backwards = added_in_order(arrays);
  for (const char* type : {"local", "device"})
    for (const bool update : {false, true}) {
      const auto store = KVStore::create(type);
      store->init({"w", "v"}, {zeros({33, 17}), zeros({33, 17})});
      if (update)
        store->set_updater([](const ParamKey&, const NDArray& grad, const NDArray& weight) { grad.copyto(weight); });
      const std::vector<NDArray> reversed(arrays.rbegin(), arrays.rend());
      for (int round = 0; round < 3; ++round) store->push({"w", "v"}, {reversed, arrays});
      for (const Context context : all_devices()) {
        EXPECT_EQ(pulled(*store, "w", {33, 17}, context).to_vector<float>(), forwards) << type << " " << context;
        EXPECT_EQ(pulled(*store, "v", {33, 17}, context).to_vector<float>(), backwards) << type << " " << context;
      }
    }
}

TEST(LocalStore, UpdatesWhereTheSumIs) {
  for (const bool device : {false, true}) {
    const auto store = KVStore::create(device ? "device" : "local");
    store->init({"w"}, {zeros({2})});
    std::vector<Context> seen;
    store->set_updater([&](const ParamKey&, const NDArray& grad, const NDArray& weight) {
      EXPECT_EQ(grad.context(), weight.context());
      seen.push_back(weight.context());
    });
    store->push({"w"}, {{ones({2}, cpu(2)), ones({2}, cpu(1))}});
    store->push({"w"}, {{ones({2}, cpu(1))}});  // the first push has decided
    EXPECT_EQ(seen, std::vector<Context>(2, device ? cpu(2) : cpu(0)));
  }
}

TEST(LocalStore, LetsAnUpdaterLookIntoTheStore) {
  const auto store = KVStore::create();
  store->init({"a", "b"}, {zeros({1}), full({1}, 7)});
  store->set_updater(
      [&](const ParamKey&, const NDArray&, const NDArray& weight) { pulled(*store, "b", {1}).copyto(weight); });
  store->push({"a"}, {{ones({1})}});
  EXPECT_EQ(pulled(*store, "a", {1}).item(), 7);
}

TEST(LocalStore, RefusesBadKeys) {
  const auto store = KVStore::create();
  const NDArray one = ones({2});
  EXPECT_TRUE(fails_with([&] { store->init({1, "a"}, {one, one}); }, "key a", "a name", "numbers"));
  store->init({3}, {one});
  EXPECT_TRUE(fails_with([&] { store->init({"a"}, {one}); }, "key a", "a name"));
  EXPECT_TRUE(fails_with([&] { store->pull({"3"}, {{one}}); }, "key 3", "a name"));
  EXPECT_TRUE(fails_with([&] { store->init({3}, {one}); }, "key 3", "already"));
  EXPECT_TRUE(fails_with([&] { store->init({4, 4}, {one, one}); }, "key 4", "already"));
  EXPECT_TRUE(fails_with([&] { store->push({4}, {{one}}); }, "push", "key 4", "init")) << "a failed init kept a key";
  EXPECT_TRUE(fails_with([&] { store->pull({9}, {{one}}); }, "pull", "key 9", "init"));
  EXPECT_TRUE(fails_with([&] { store->init({5, 6}, {one}); }, "2 keys, 1 values"));
  EXPECT_TRUE(fails_with([&] { store->push({3}, {}); }, "1 keys, 0 values"));
  EXPECT_TRUE(fails_with([&] { store->push({3}, {{}}); }, "key 3", "no arrays"));
  EXPECT_TRUE(fails_with([&] { store->push({3}, {{NDArray()}}); }, "key 3", "empty"));
}

TEST(LocalStore, RefusesOtherShapesAndTypesAndChangesNothing) {
  const auto store = KVStore::create();
  store->init({"a", "b"}, {zeros({2, 3}), zeros({2})});
  const auto bad_shape = [&] { store->push({"b", "a"}, {{ones({2})}, {ones({2, 3}), ones({3, 2}, cpu(1))}}); };
  EXPECT_TRUE(fails_with(bad_shape, "push", "key a", "(2,3)", "(3,2)", "cpu(1)"));
  const auto bad_type = [&] { store->push({"b", "a"}, {{ones({2})}, {ones({2, 3}, cpu(), DType::float64)}}); };
  EXPECT_TRUE(fails_with(bad_type, "push", "key a", "float32", "float64"));
  EXPECT_TRUE(fails_with([&] { store->pull({"a"}, {{ones({3, 2})}}); }, "pull", "key a", "(2,3)", "(3,2)"));
  const auto bad_out = [&] { store->pushpull({"b"}, {{ones({2})}}, {{ones({1})}}); };
  EXPECT_TRUE(fails_with(bad_out, "pull", "key b", "(2,)", "(1,)"));
  EXPECT_EQ(pulled(*store, "b", {2}).to_vector<float>(), (Floats{0, 0}));
}

TEST(LocalStore, HasDenseArraysAlone) {
  const auto store = KVStore::create();
  store->init({"a"}, {zeros({2, 3})});
  EXPECT_TRUE(fails_with(
      [&] {
        store->row_sparse_pull({"a"}, {{zeros({2, 3})}}, {{zeros({1})}});
      },
      "row_sparse_pull", "key a", "dense"));
}

// MXNet's `local` adds in another order than its `device`; here both add as `device` does.
TEST(LocalStore, AgreesWithWhatMXNetRecorded) {
  const auto recorded = read_recorded("kvstore.json.gz");
  int cases = 0;
  for (const auto& each : recorded.at("cases")) {
    const auto store = KVStore::create(each.at("type"));
    if (each.contains("threshold"))
      store->set_gradient_compression({{"type", "2bit"}, {"threshold", join(each.at("threshold").get<double>())}});
    bool first = true;
    for (const auto& step : each.at("steps")) {
      std::vector<NDArray> arrays;
      for (const auto& array : step.at("pushed"))
        arrays.push_back(decode_array(array).as_in_context(cpu(static_cast<int>(arrays.size()))));
      const NDArray expected = decode_array(step.at("pulled"));
      if (std::exchange(first, false)) store->init({"w"}, {zeros(expected.shape())});
      store->push({"w"}, {arrays});
      const NDArray sum = pulled(*store, "w", expected.shape());
      EXPECT_TRUE(store->type() == "local" ? all_close(sum, expected) : same_bits(sum, expected)) << each.at("id");
    }
    ++cases;
  }
  EXPECT_EQ(cases, 16);
}

}  // namespace
}  // namespace symbind::testing
