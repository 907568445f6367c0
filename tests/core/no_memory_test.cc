// What happens when even small allocations fail. All of this room's tests allocate through the operators below, which
// can be told to refuse.
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "symbind/core/device.h"
#include "symbind/core/ndarray.h"

namespace {
thread_local bool refuses = false;
}  // namespace

void* operator new(size_t bytes) {
  void* const memory = refuses ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace symbind {
namespace {

TEST(NoMemory, ABlockThatCannotBePooledIsFreed) {
  Device& device = Device::get(cpu(5));
  device.empty_pool();
  const int64_t before = device.memory().live;
  NDArray array = empty({1000}, cpu(5));
  refuses = true;
  array = NDArray();
  refuses = false;
  EXPECT_EQ(device.memory().live, before);
  EXPECT_EQ(device.memory().pooled, 0);
  array = empty({1000}, cpu(5));
  array = NDArray();
  EXPECT_GT(device.memory().pooled, 0) << "with memory, it is kept";
}

}  // namespace
}  // namespace symbind
