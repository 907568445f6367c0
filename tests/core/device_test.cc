#include "symbind/core/device.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/core/ndarray.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::all_devices;
using testing::fails_with;

TEST(Context, PrintsAndReadsBack) {
  EXPECT_EQ(cpu().str(), "cpu(0)");
  EXPECT_EQ(gpu(3).str(), "gpu(3)");
  EXPECT_EQ(cpu_pinned(1).str(), "cpu_pinned(1)");
  for (const Context context : {cpu(0), cpu(12), gpu(3), cpu_pinned(0)})
    EXPECT_EQ(Context::from_string(context.str()), context);
}

TEST(Context, IsComparedByKindAndNumber) {
  EXPECT_EQ(cpu(1), cpu(1));
  EXPECT_NE(cpu(1), cpu(2));
  EXPECT_NE(cpu(0), gpu(0));
  EXPECT_NE(std::hash<Context>{}(cpu(0)), std::hash<Context>{}(cpu(1)));
}

TEST(Context, OfNonsenseIsAnError) {
  for (const char* text : {"", "tpu(0)", "cpu(x)", "cpu(0", "gpu(-1)"})
    EXPECT_THROW(Context::from_string(text), Error) << text;
}

TEST(Device, IsOnePerContext) {
  EXPECT_EQ(&Device::get(cpu(0)), &Device::get(cpu(0)));
  EXPECT_NE(&Device::get(cpu(0)), &Device::get(cpu(1)));
}

TEST(Device, ThatIsNotThereIsAnErrorWithASentence) {
  EXPECT_TRUE(fails_with([] { Device::get(gpu(num_gpus())); }, "gpu(" + std::to_string(num_gpus()) + ")"));
  EXPECT_TRUE(fails_with([] { Device::get(gpu(-1)); }, "-1"));
  EXPECT_THROW(Device::get(cpu(-1)), Error);
}

TEST(Memory, IsCountedAndComesBack) {
  for (const Context context : all_devices()) {
    Device& device = Device::get(context);
    const int64_t before = device.memory().live;
    device.reset_peak();
    {
      const NDArray a = empty({1000}, context), b = empty({500}, context, DType::float64);
      EXPECT_GE(device.memory().live, before + 8000) << context;
      EXPECT_LE(device.memory().live, before + 8000 + 1024) << context;
    }
    EXPECT_EQ(device.memory().live, before) << context;
    EXPECT_GE(device.memory().peak, before + 8000) << context;
    device.reset_peak();
    EXPECT_EQ(device.memory().peak, before) << context;
  }
}

TEST(Memory, IsAlignedForVectors) {
  for (int64_t count : {1, 3, 17, 1000, 100000}) {
    const NDArray a = empty({count}, cpu(), DType::uint8);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u) << count;
  }
}

TEST(Memory, IsUsedAgainAfterItCameBack) {
  Device& device = Device::get(cpu(3));
  device.empty_pool();
  for (int i = 0; i < 100; ++i) empty({1 << 16}, cpu(3));
  EXPECT_LE(device.memory().pooled, int64_t{8} << 18);
  device.empty_pool();
  EXPECT_EQ(device.memory().pooled, 0);
}

TEST(Memory, ThatCannotBeHadIsAnError) {
  EXPECT_TRUE(fails_with([] { empty({int64_t{1} << 52}, cpu(), DType::float64); }, "bytes"));
  EXPECT_THROW(empty({int64_t{1} << 32, int64_t{1} << 32}), Error);
  EXPECT_THROW(empty({int64_t{1} << 62}), Error);
}

TEST(Storage, AdvancesItsVersionWithEveryWrite) {
  NDArray a = zeros({4});
  const NDArray view = a.slice(1, 2);
  const uint64_t version = a.storage().version();
  a.to_vector<float>();
  EXPECT_EQ(a.storage().version(), version) << "reading is no write";
  a.fill(1);
  const uint64_t filled = a.storage().version();
  EXPECT_GT(filled, version);
  a.copy_from(std::vector<float>{1, 2, 3, 4});
  EXPECT_GT(view.storage().version(), filled) << "a view is the same storage";
  const uint64_t written = a.storage().version();
  ones({4}).copyto(a);
  EXPECT_GT(a.storage().version(), written);
  const uint64_t copied = a.storage().version();
  a.mutable_data();
  EXPECT_GT(a.storage().version(), copied);
}

TEST(Storage, OfSomebodyElseCountsAsExported) {
  auto owner = std::make_shared<std::vector<float>>(4, 2.0f);
  auto storage = std::make_shared<Storage>(Device::get(cpu()), owner->data(), 16, owner);
  EXPECT_TRUE(storage->exported());
  std::weak_ptr<std::vector<float>> watch = owner;
  owner.reset();
  NDArray a(storage, 0, {4}, DType::float32);
  storage.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{2, 2, 2, 2}));
  a = NDArray();
  EXPECT_TRUE(watch.expired());
}

TEST(Copies, GoBetweenAnyTwoDevices) {
  std::vector<Context> contexts = all_devices();
  contexts.push_back(cpu(1));
  contexts.push_back(cpu_pinned(0));
  const NDArray original = testing::random_array({37, 5}, 1);
  for (const Context from : contexts) {
    for (const Context to : contexts) {
      const NDArray there = original.as_copy_in(from).as_copy_in(to);
      EXPECT_EQ(there.context(), to);
      EXPECT_TRUE(testing::same_bits(there, original)) << from << " to " << to;
    }
  }
  waitall();
}

}  // namespace
}  // namespace symbind
