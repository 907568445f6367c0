#include "symbind/core/parts.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "symbind/core/context.h"

namespace symbind::testing {
namespace {

TEST(Parts, AreListedOnceWithAReasonWhereTheyAreNotUsable) {
  std::set<std::string> names;
  for (const Part& part : parts()) {
    EXPECT_TRUE(names.insert(part.name).second) << part.name;
    EXPECT_TRUE(part.usable || !part.details.empty()) << part.name;
  }
  for (const char* name : {"CPU", "LAPACK", "oneDNN", "JPEG images", "PNG images", "Open MPI", "NCCL", "CUDA"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Parts, CountTheGpusThatContextsName) {
  const std::vector<Part> all = parts();
  const auto gpus = std::ranges::count_if(all, [](const Part& part) { return part.name.starts_with("gpu("); });
  EXPECT_EQ(gpus, num_gpus());
  const auto cuda = std::ranges::find(all, "CUDA", &Part::name);
  ASSERT_NE(cuda, all.end());
  EXPECT_EQ(cuda->usable, num_gpus() > 0);
}

}  // namespace
}  // namespace symbind::testing
