#include "symbind/core/parts.h"

#include <algorithm>
#include <regex>
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

TEST(Parts, SayWhatTheKernelsOfGpusWereCompiledFor) {
  const std::vector<Part> all = parts();
  const auto cuda = std::ranges::find(all, "CUDA", &Part::name);
  ASSERT_NE(cuda, all.end());
  if (cuda->details == "Symbind was built without CUDA") GTEST_SKIP() << cuda->details;
  EXPECT_TRUE(std::regex_search(cuda->details, std::regex(R"(^built with \d+\.\d, kernels for \d+\.\d(, \d+\.\d)*)")))
      << cuda->details;
}

}  // namespace
}  // namespace symbind::testing
